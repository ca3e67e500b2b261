package integration

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
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
	Taken    int64 `json:"taken"`
}

// buildDemo builds the command and returns its path.
func buildDemo(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "semel")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/semel-dev/semel/cmd/semel").CombinedOutput()
	assert.NoError(t, err, "go build: %s", out)
	return program
}

// startDemo starts a demo of its own for the test and returns its address.
func startDemo(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program, "demo", "--addr", "127.0.0.1:0", "--no-browser", "--json", "--data", t.TempDir())
	cmd.Stderr = testWriter{t}
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	t.Cleanup(sync.OnceFunc(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM), "stop the demo")
		kill := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		assert.NoError(t, cmd.Wait(), "the demo's end")
	}))
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	assert.NoError(t, err, "read the demo's address")
	var started struct {
		URL string `json:"url"`
	}
	assert.NoError(t, json.Unmarshal(line, &started), "%s", line)
	return started.URL
}

// ledgerOf reads the account of one door.
func ledgerOf(t *testing.T, base, door string) account {
	t.Helper()
	resp, err := http.Get(base + "/demo/ledger")
	assert.NoError(t, err)
	defer resp.Body.Close()
	var ledger map[string]account
	assert.NoError(t, json.NewDecoder(resp.Body).Decode(&ledger))
	got, ok := ledger[door]
	assert.True(t, ok, "the ledger %v has no %s", ledger, door)
	return got
}

// arrived is how many payment requests have reached a door.
func arrived(t *testing.T, base, door string) int {
	t.Helper()
	resp, err := http.Get(base + "/demo/log")
	assert.NoError(t, err)
	defer resp.Body.Close()
	var log []struct {
		Door string `json:"door"`
	}
	assert.NoError(t, json.NewDecoder(resp.Body).Decode(&log))
	n := 0
	for _, entry := range log {
		if entry.Door == door {
			n++
		}
	}
	return n
}

// eventually waits until ok, which looks at processes that this test cannot
// be told by.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
	}
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
