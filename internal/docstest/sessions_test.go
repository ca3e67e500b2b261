package docstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// demoAddress is where documents expect the demo, and demoData where they
// expect its files.
const (
	demoAddress = "127.0.0.1:8420"
	demoData    = "demo-data"
)

// step is one thing to type in a session with the demo.
type step struct {
	command string
	printed bool   // what comes out is printed in the document:
	output  string // this, else it has to succeed
}

// session is what a document has to type while the demo runs. In a block of
// console, "$ " is before a command, "> " before more of it, and the rest is
// what comes out. In a block of sh, what counts is curl and the address of the
// demo.
func (d document) session() []step {
	var steps []step
	for _, b := range d.blocks("console", "sh") {
		if b.language == "console" {
			steps = append(steps, printed(b.text)...)
			continue
		}
		steps = append(steps, b.curls(demoAddress)...)
	}
	return steps
}

// curls returns the lines of a block that ask an address with curl.
func (b block) curls(address string) []step {
	var steps []step
	for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
		if strings.HasPrefix(line, "curl ") && strings.Contains(line, address) {
			steps = append(steps, step{command: strings.TrimSuffix(line, "\n")})
		}
	}
	return steps
}

func printed(text string) []step {
	var steps []step
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command, printed: true})
			continue
		}
		if len(steps) == 0 { // output of no command: it will not be found
			steps = append(steps, step{printed: true})
		}
		last := &steps[len(steps)-1]
		if more, ok := strings.CutPrefix(line, "> "); ok {
			last.command += more
		} else {
			last.output += line
		}
	}
	return steps
}

// All that a document has to type is one session: one shell, and one demo that
// was started for it.
func TestSessionsInDocumentsGoAsPrinted(t *testing.T) {
	t.Parallel()
	needShell(t)
	program := buildSemel(t)
	for _, d := range documents(t) {
		steps := d.session()
		if len(steps) == 0 {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			t.Parallel()
			address, data := startDemo(t, program)
			outputs, statuses := play(t, steps, address, strings.NewReplacer("go run ./cmd/semel", program, demoAddress, address, demoData+"/", data+"/"))
			var got, want masker
			for i, s := range steps {
				if !s.printed {
					assert.Equal(t, statuses[i], "0", "exit status of %s, which printed %s", s.command, outputs[i])
				} else if got, want := got.mask(outputs[i]), want.mask(s.output); got != want {
					t.Errorf("%s\nprints  %s\nnot     %s", s.command, outputs[i], s.output)
				}
			}
		})
	}
}

// What a document asks its program with curl is asked twice, and answered as it
// says: the same again, and what ran once is replayed.
func TestCurlInDocumentsIsAnsweredAsTheySay(t *testing.T) {
	t.Parallel()
	needShell(t)
	say := map[string][]string{
		"README.md":      {"HTTP/1.1 201 Created", "order 1,"},
		"docs/sqlite.md": {"HTTP/1.1 201 Created", "order 1", `["book"]`, `"storeClass": "durable"`},
	}
	for _, d := range documents(t) {
		var once []step
		for _, b := range d.blocks("sh") {
			once = append(once, b.curls(programAddress)...)
		}
		want, known := say[d.path]
		assert.Equal(t, len(once) > 0, known, "whether %s asks its program with curl", d.path)
		if !known {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			t.Parallel()
			address := serveProgram(t, d.path)
			outputs, statuses := play(t, slices.Concat(once, once), address, strings.NewReplacer(programAddress, address))
			for i, status := range statuses {
				assert.Equal(t, status, "0", "exit status of %s, which printed %s", once[i%len(once)].command, outputs[i])
			}
			all := strings.Join(outputs[:len(once)], "")
			for _, text := range want {
				assert.Contains(t, all, text)
			}
			for i, s := range once {
				header, body := cutLast(outputs[i], "\r\n\r\n")
				headerAgain, bodyAgain := cutLast(outputs[i+len(once)], "\r\n\r\n")
				assert.Equal(t, bodyAgain, body, "the second answer to %s", s.command)
				if strings.Contains(s.command, "-X POST") {
					assert.True(t, !strings.Contains(header, "Idempotent-Replayed:"), "the first answer to %s was replayed", s.command)
					assert.Contains(t, headerAgain, "Idempotent-Replayed: true", "the second answer to %s", s.command)
				}
			}
		})
	}
}

// cutLast returns what is before and after the last separator; without one all
// is after it.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(separator):]
}

// needShell skips a test where nobody can type.
func needShell(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			assert.Skip(t, "there is no "+tool+" here (Debian: apt-get install "+tool+")")
		}
	}
}

// buildSemel returns where the command is.
func buildSemel(t *testing.T) string {
	t.Helper()
	assert.LeaveToPlainRun(t, "what it drives is built without the race detector")
	program := filepath.Join(t.TempDir(), "semel")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/semel")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the command does not build: %v\n%s", err, out)
	}
	return program
}

// startDemo returns the address of a demo that runs until the test ends, and
// where its files are.
func startDemo(t *testing.T, program string) (address, data string) {
	t.Helper()
	data = t.TempDir()
	cmd := exec.Command(program, "demo", "--addr=127.0.0.1:0", "--no-browser", "--json", "--data="+data)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	var said struct{ URL string }
	assert.NoError(t, json.NewDecoder(stdout).Decode(&said), "where the demo is")
	return strings.TrimPrefix(said.URL, "http://"), data
}

// sessionWithin bounds one document.
const sessionWithin = 2 * time.Minute

// play types all steps, as typed has them here, into one shell and returns, of
// each, what it printed and its exit status. A curl that is answered with an
// error has failed.
func play(t *testing.T, steps []step, address string, typed *strings.Replacer) (outputs, statuses []string) {
	t.Helper()
	const separator = "\x1e"
	var script strings.Builder
	script.WriteString("exec 2>&1\n")
	for _, s := range steps {
		fmt.Fprintf(&script, "%s\nprintf '\\036%%s\\036' $?\n", typed.Replace(s.command))
	}
	home := t.TempDir()
	assert.NoError(t, os.WriteFile(filepath.Join(home, ".curlrc"), []byte("fail-with-body\nno-progress-meter\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), sessionWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script.String())
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CURL_HOME="+home, "DEMO=http://"+address)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second
	assert.NoError(t, cmd.Run(), "the session, which printed %s", &out)
	parts := strings.Split(out.String(), separator)
	assert.Equal(t, len(parts), 2*len(steps)+1, "parts of %q", parts)
	for i := range steps {
		outputs, statuses = append(outputs, parts[2*i]), append(statuses, parts[2*i+1])
	}
	return outputs, statuses
}

// masker takes out of an output what is another each time: ids become their
// number in the order in which they appear, so that the same id twice stays
// the same id twice. An age goes with the spaces that fill its column.
type masker struct{ ids []string }

var changing = regexp.MustCompile(`\b[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b|\b\d+\.\d\d s\b|\b\d+s +|\bprocess \d+\b|127\.0\.0\.1:\d+`)

func (m *masker) mask(text string) string {
	return changing.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasSuffix(found, " s"):
			return "(duration)"
		case strings.HasSuffix(found, " "):
			return "(age) "
		case strings.HasPrefix(found, "127."):
			return "(address)"
		case strings.HasPrefix(found, "process "):
			return "(process)"
		}
		for i, id := range m.ids {
			if strings.HasPrefix(found, id) {
				return fmt.Sprint("(id ", i, ")")
			}
		}
		m.ids = append(m.ids, found[:8])
		return fmt.Sprint("(id ", len(m.ids)-1, ")")
	})
}
