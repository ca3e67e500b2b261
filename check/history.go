package check

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// WriteHistory writes what was sent and what came back, a line or two an
// exchange, with the fields that matter to a repeated request.
func (f Finding) WriteHistory(w io.Writer) error {
	for _, x := range f.shown() {
		if x.skipped > 0 {
			if _, err := fmt.Fprintf(w, "       … %d more of the same kind\n", x.skipped); err != nil {
				return err
			}
			continue
		}
		if err := x.write(w, x.number); err != nil {
			return err
		}
	}
	return nil
}

// step is a line of a history: an exchange, or how many are left out.
type step struct {
	Exchange
	number  int // which of all it is, from 1
	skipped int
}

// mostShown is how many exchanges that differ in nothing but the key are shown
// one after the other.
const mostShown = 3

// shown leaves out the middle of long rows of equal exchanges.
func (f Finding) shown() []step {
	var steps []step
	row := 0
	for i, x := range f.History {
		row++
		if i > 0 && !alike(f.History[i-1], x) {
			row = 1
		}
		isLast := i+1 == len(f.History) || !alike(x, f.History[i+1])
		switch {
		case row < mostShown || isLast:
			steps = append(steps, step{Exchange: x, number: i + 1})
		case steps[len(steps)-1].skipped > 0:
			steps[len(steps)-1].skipped++
		default:
			steps = append(steps, step{skipped: 1})
		}
	}
	return steps
}

func alike(a, b Exchange) bool {
	return a.Method == b.Method && a.URL == b.URL && a.Status == b.Status && string(a.Body) == string(b.Body)
}

func (x Exchange) write(w io.Writer, n int) error {
	together := ""
	if x.AtOnce {
		together = " at the same time"
	}
	lines := []string{fmt.Sprintf("  %2d.  %s%s  %s %s", n, x.After.Round(time.Millisecond), together, x.Method, x.URL)}
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		lines = append(lines, fieldLines("       > ", x.Header, name)...)
	}
	if len(x.Body) > 0 {
		lines = append(lines, "       > "+short(x.Body))
	}
	if x.Note != "" {
		lines = append(lines, "       ~ "+x.Note)
	}
	if x.Status == 0 {
		lines = append(lines, "       < no reply: "+x.Err)
	} else {
		lines = append(lines, fmt.Sprintf("       < %d %s, after %s", x.Status, http.StatusText(x.Status), x.Took.Round(time.Millisecond)))
		for _, name := range slices.Concat(markers, []string{"Content-Type", locationLeaf, "Retry-After", "Link"}) {
			lines = append(lines, fieldLines("       < ", x.ReplyHeader, name)...)
		}
		if len(x.ReplyBody) > 0 {
			lines = append(lines, "       < "+short(x.ReplyBody))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func fieldLines(before string, h http.Header, name string) []string {
	var lines []string
	for _, value := range h[name] {
		lines = append(lines, before+name+": "+short([]byte(value)))
	}
	return lines
}

// short is a text on one line, cut where nobody reads on.
func short(text []byte) string {
	const enough = 80
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), "�"))
	if runes := []rune(line); len(runes) > enough {
		return fmt.Sprintf("%s… (%d characters more)", string(runes[:enough]), len(runes)-enough)
	}
	return line
}

// WriteScript writes a shell script that sends the requests of the finding again
// with curl, under a new key for each one of it. What was hidden in the history
// is read from the environment; what a relay did on the way is a comment.
func (f Finding) WriteScript(w io.Writer, keyHeader string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# %s: %s\n# Expected: %s\n", f.Case.ID, f.Case.Title, f.Case.Expects)
	keys := make(map[string]string)
	for _, x := range f.History {
		for _, value := range x.Header[http.CanonicalHeaderKey(keyHeader)] {
			name := strings.Trim(value, `"`)
			if _, known := keys[name]; !known && name != "" && isPlain(name) {
				keys[name] = fmt.Sprintf("KEY%d", len(keys)+1)
				fmt.Fprintf(&b, "%s=check-$(date +%%s)-$$-%d\n", keys[name], len(keys))
			}
		}
	}
	var before command
	for i, x := range f.History {
		next := command{line: x.curl(http.CanonicalHeaderKey(keyHeader), keys), times: 1}
		next.atOnce = x.AtOnce || i+1 < len(f.History) && f.History[i+1].AtOnce
		if x.Note != "" {
			next.line = "# " + x.Note + ": end the next before its reply\n" + next.line
		}
		if next.line == before.line && next.atOnce == before.atOnce {
			before.times++
			continue
		}
		before.write(&b, next.atOnce)
		before = next
	}
	before.write(&b, false)
	_, err := io.WriteString(w, b.String())
	return err
}

// command is a line of a script, which is run some times.
type command struct {
	line   string
	times  int
	atOnce bool
}

func (c command) write(b *strings.Builder, moreAtOnce bool) {
	line, done := c.line, ""
	if c.atOnce {
		line += " &"
		done = "wait\n"
	}
	switch {
	case c.times == 0:
		return
	case c.times > 1 && c.atOnce:
		fmt.Fprintf(b, "for i in $(seq %d); do %s done\n", c.times, line)
	case c.times > 1:
		fmt.Fprintf(b, "for i in $(seq %d); do %s; done\n", c.times, line)
	default:
		fmt.Fprintln(b, line)
	}
	if !moreAtOnce {
		b.WriteString(done)
	}
}

// curl is one request as a command.
func (x Exchange) curl(keyHeader string, keys map[string]string) string {
	parts := []string{"curl -i -sS -X " + x.Method}
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		for _, value := range x.Header[name] {
			parts = append(parts, "-H "+headerArgument(name, value, keyHeader, keys))
		}
	}
	if len(x.Body) > 0 {
		parts = append(parts, "--data-binary "+quoted(string(x.Body)))
	}
	return strings.Join(append(parts, quoted(x.URL)), " ")
}

func headerArgument(name, value, keyHeader string, keys map[string]string) string {
	if variable, known := keys[strings.Trim(value, `"`)]; known && name == keyHeader {
		before, after, _ := strings.Cut(value, strings.Trim(value, `"`))
		return quoted(name+": "+before) + `"$` + variable + `"` + quoted(after)
	}
	if value == hidden {
		return quoted(name+": ") + `"$` + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + `"`
	}
	return quoted(name + ": " + value)
}

// isPlain reports whether a key is one that can be another: the cases that are
// about the form of a key need theirs as it is.
func isPlain(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r != '-' && !isLetterOrDigit(byte(r)) || r > '~' }) && len(key) < 100
}

// quoted quotes for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
