package integration

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/semelhttp"
)

// The programs of docs/open.md are built and run, each on a server.

var programBlock = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```")

// builtProgram builds the one program of the page that has a text in it.
func builtProgram(t *testing.T, text string) (path string) {
	t.Helper()
	var sources []string
	for _, m := range programBlock.FindAllStringSubmatch(document(t, "docs/open.md"), -1) {
		if strings.Contains(m[1], text) {
			sources = append(sources, m[1])
		}
	}
	assert.Equal(t, len(sources), 1, "programs with %s", text)
	dir := t.TempDir()
	file, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	assert.NoError(t, os.WriteFile(file, []byte(sources[0]), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, file)
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	assert.NoError(t, err, string(out))
	return path
}

// listening runs a program until the test ends, or end is called, and returns
// its address.
func listening(t *testing.T, path, setting string) (address string, end func()) {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), setting, "LISTEN=127.0.0.1:0")
	said, err := cmd.StderrPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	ended := false
	end = func() {
		if !ended {
			ended = true
			cmd.Process.Kill() //nolint:errcheck // it may have ended.
			cmd.Wait()         //nolint:errcheck // it was killed.
		}
	}
	t.Cleanup(end)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go io.Copy(io.Discard, said) //nolint:errcheck // it ends with the program.
			return at, end
		}
		t.Log(lines.Text())
	}
	t.Fatal("the program ended before it listened")
	return "", end
}

// paid sends a payment and returns the answer's body and Semel-Outcome.
func paid(t *testing.T, address, key string) (body, outcome string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/payments", strings.NewReader(`{"amount":4200}`))
	assert.NoError(t, err)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	assert.Equal(t, resp.StatusCode, http.StatusCreated, string(text))
	return string(text), resp.Header.Get("Semel-Outcome")
}

// nothingElsePays sends what is no POST /payments, and asks for the rules.
func nothingElsePays(t *testing.T, address string) {
	t.Helper()
	for target, want := range map[string]int{
		"GET /":             http.StatusNotFound,
		"GET /favicon.ico":  http.StatusNotFound,
		"POST /":            http.StatusNotFound,
		"POST /payments/1":  http.StatusNotFound,
		"GET /payments":     http.StatusMethodNotAllowed,
		"PATCH /payments":   http.StatusMethodNotAllowed,
		"OPTIONS /payments": http.StatusMethodNotAllowed,
	} {
		method, path, _ := strings.Cut(target, " ")
		status, body := answerTo(t, method, "http://"+address+path)
		assert.Equal(t, status, want, target+": "+body)
		assert.True(t, !strings.Contains(body, "payment "), "%s paid: %s", target, body)
	}
	status, body := answerTo(t, http.MethodGet, "http://"+address+semelhttp.WellKnownPath)
	assert.Equal(t, status, http.StatusOK, "the rules: "+body)
	assert.Contains(t, body, `"path": "/payments"`, "the rules")
}

func answerTo(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	assert.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	assert.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestTheProgramsThatOpenAStoreDoWhatThePageSays(t *testing.T) {
	t.Parallel()
	redis := func(cluster bool) func(t *testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			if cluster {
				return "REDIS_URL=" + clusterURL(services.SharedRedisCluster(t))
			}
			return "REDIS_URL=" + services.SharedRedis(t).URL()
		}
	}
	for name, c := range map[string]struct {
		has     string
		setting func(t *testing.T) string
	}{
		"PostgreSQL by database/sql": {"OpenPostgreSQL", func(t *testing.T) string {
			t.Helper()
			return "DATABASE_URL=" + services.SharedPostgres(t).NewDatabase(t)
		}},
		"MariaDB": {"OpenMariaDB", func(t *testing.T) string {
			t.Helper()
			return "DATABASE_URL=" + services.SharedMariaDB(t).NewDatabase(t)
		}},
		"PostgreSQL by pgx": {"pgxstore.Open", func(t *testing.T) string {
			t.Helper()
			return "DATABASE_URL=" + services.SharedPostgres(t).NewDatabase(t)
		}},
		"Redis":         {"redisstore.Open", redis(false)},
		"Redis Cluster": {"redisstore.Open", redis(true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, setting := builtProgram(t, c.has), c.setting(t)
			address, end := listening(t, program, setting)
			nothingElsePays(t, address)
			key := strings.ReplaceAll(name, " ", "-") // the Redis server is others' too
			first, outcome := paid(t, address, key)
			assert.Equal(t, outcome, "executed")
			again, outcome := paid(t, address, key)
			assert.Equal(t, outcome, "replayed")
			assert.Equal(t, again, first, "the repeat")
			end()
			address, _ = listening(t, program, setting)
			again, outcome = paid(t, address, key)
			assert.Equal(t, outcome, "replayed", "after a restart")
			assert.Equal(t, again, first, "after a restart")
			other, outcome := paid(t, address, key+"-2")
			assert.Equal(t, outcome, "executed", "another key")
			assert.True(t, other != first, "another payment: %s", other)
		})
	}
}
