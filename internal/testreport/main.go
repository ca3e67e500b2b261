// Command testreport turns the output of "go test -json" on its standard input
// into what a person wants to read: a line for each package, the whole output
// of what failed, and as the last lines what was skipped and the totals. What the
// run with the race detector leaves to the plain one is only counted. It
// exits with 1 if anything failed or no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Stdin, os.Stdout)) }

// event is one line of test2json; see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	FailedBuild string
	Test        string
	Elapsed     float64
	Output      string
}

// report gathers events.
type report struct {
	out                     io.Writer
	output                  map[string]*strings.Builder // by package and test
	skips                   []string
	passed, failed, skipped int
	left                    int  // to the plain run
	broken                  bool // a package failed
}

func run(in io.Reader, out io.Writer) int {
	r := &report{out: out, output: make(map[string]*strings.Builder)}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // the go command's own words
			continue
		}
		r.add(e)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(out, "testreport:", err)
		r.broken = true
	}
	return r.close()
}

func (r *report) add(e event) {
	switch {
	case e.Action == "output" && e.Test == "" && verdict(e.Output):
	case e.Action == "output" && strings.HasPrefix(strings.TrimSpace(e.Output), reported):
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output":
		r.buffer(e).WriteString(e.Output)
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Test != "":
		r.endTest(e)
	default:
		r.endPackage(e)
	}
}

// reported begins a line that a test wants read while it runs, and also when it
// passes.
const reported = "report: "

// inPlainRun begins the reason of a test that assert.LeaveToPlainRun skips.
const inPlainRun = "in the plain run: "

// verdict reports whether line is go test's own summary, in whose place
// endPackage has another.
func verdict(line string) bool {
	return line == "FAIL\n" || line == "PASS\n" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "ok  \t")
}

func (r *report) buffer(e event) *strings.Builder {
	name := e.Package + " " + e.Test
	b := r.output[name]
	if b == nil {
		b = &strings.Builder{}
		r.output[name] = b
	}
	return b
}

func (r *report) endTest(e event) {
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		fmt.Fprint(r.out, r.buffer(e).String())
	case "skip":
		why := reason(r.buffer(e).String())
		if strings.Contains(why, inPlainRun) {
			r.left++
			break
		}
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, why))
	default:
		return // run, pause, cont, bench
	}
	delete(r.output, e.Package+" "+e.Test)
}

// reason is what a test logged before it was skipped.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

func (r *report) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		r.broken = true
		r.flush(e)
		fmt.Fprintf(r.out, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	}
}

// flush prints what a failed package left unsaid: a panic or a time-out ends
// tests without an event of their own. That such a test was waiting for its
// turn says nothing.
func (r *report) flush(e event) {
	for name, b := range r.output {
		if !strings.HasPrefix(name, e.Package+" ") {
			continue
		}
		delete(r.output, name)
		for line := range strings.Lines(b.String()) {
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(r.out, line)
			}
		}
	}
}

func (r *report) close() int {
	if len(r.skips) > 0 {
		fmt.Fprintln(r.out, "\nskipped:")
		for _, s := range r.skips {
			fmt.Fprintln(r.out, "  "+s)
		}
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped", r.passed, r.failed, r.skipped)
	if r.left > 0 {
		fmt.Fprintf(r.out, ", %d left to the plain run", r.left)
	}
	fmt.Fprintln(r.out)
	if r.broken || r.failed > 0 || r.passed == 0 {
		return 1
	}
	return 0
}
