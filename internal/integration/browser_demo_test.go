package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// account is one account of GET /demo/ledger.
type account struct {
	Orders   int64 `json:"orders"`
	Payments int64 `json:"payments"`
	Charges  int64 `json:"charges"`
	Charged  int64 `json:"charged"`
	Taken    int64 `json:"taken"`
}

// built is where TestMain lets the command be put.
var built struct {
	dir  string
	once sync.Once
	err  error
}

// buildDemo returns the path of the command, which it builds once.
func buildDemo(t *testing.T) string {
	t.Helper()
	assert.LeaveToPlainRun(t, "what it drives is built without the race detector")
	program := filepath.Join(built.dir, "semel")
	built.once.Do(func() {
		out, err := exec.Command("go", "build", "-o", program, "github.com/semel-dev/semel/cmd/semel").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	assert.NoError(t, built.err)
	return program
}

// demo is a reference system of the test's own.
type demo struct {
	t    *testing.T
	base string
	// stop ends its processes; so does the end of the test.
	stop func()
	pid  int
	// printed is what it has printed so far, beside its address.
	printed *transcript
}

// startDemo starts program as a demo on a free port, with an empty directory and
// more in its environment.
func startDemo(t *testing.T, program string, env ...string) demo {
	t.Helper()
	cmd := exec.Command(program, "demo", "--addr", "127.0.0.1:0", "--no-browser", "--json", "--data", t.TempDir())
	cmd.Env = append(os.Environ(), env...)
	printed := &transcript{}
	cmd.Stderr = io.MultiWriter(testWriter{t}, printed)
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	d := demo{t: t, pid: cmd.Process.Pid, printed: printed, stop: sync.OnceFunc(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM), "stop the demo")
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		defer kill.Stop()
		assert.NoError(t, cmd.Wait(), "the demo's end")
	})}
	t.Cleanup(d.stop)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	assert.NoError(t, err, "read the demo's address")
	var started struct {
		URL string `json:"url"`
	}
	assert.NoError(t, json.Unmarshal(line, &started), "%s", line)
	d.base = started.URL
	return d
}

// read decodes what the demo answers at path.
func (d demo) read(path string, into any) {
	d.t.Helper()
	resp, err := http.Get(d.base + path)
	assert.NoError(d.t, err)
	defer resp.Body.Close()
	assert.NoError(d.t, json.NewDecoder(resp.Body).Decode(into), "%s", path)
}

// put sets something of the demo's.
func (d demo) put(path, body string) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPut, d.base+path, strings.NewReader(body))
	assert.NoError(d.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(d.t, err)
	defer resp.Body.Close()
	assert.Equal(d.t, resp.StatusCode, http.StatusOK, "PUT %s", path)
}

// ledger returns the account of a door.
func (d demo) ledger(door string) account {
	d.t.Helper()
	var ledger map[string]account
	d.read("/demo/ledger", &ledger)
	got, ok := ledger[door]
	assert.True(d.t, ok, "the ledger %v has no %s", ledger, door)
	return got
}

// arrived is how many payment requests have reached a door.
func (d demo) arrived(door string) int {
	d.t.Helper()
	var log []struct {
		Door string `json:"door"`
	}
	d.read("/demo/log", &log)
	n := 0
	for _, entry := range log {
		if entry.Door == door {
			n++
		}
	}
	return n
}

// transcript is what a process has printed.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds p.
func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String is all of it so far.
func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// testWriter writes to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

// findChromium returns the browser, or skips the test.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	assert.Skip(t, "there is no Chromium here (Debian: apt-get install chromium)")
	return ""
}
