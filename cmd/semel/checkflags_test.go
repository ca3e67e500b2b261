package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
)

// wire is the sound API, and what has come to it.
type wire struct {
	mu   sync.Mutex
	seen []*http.Request
	body []string
}

// before stands before the API; PUT is to it what POST is.
func (w *wire) before(api http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.seen = append(w.seen, r.Clone(r.Context()))
		w.body = append(w.body, string(body))
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method == http.MethodPut {
			r.Method = http.MethodPost
		}
		api.ServeHTTP(rw, r)
	})
}

// each gathers something of each request.
func (w *wire) each(of func(r *http.Request, body string) string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for i, r := range w.seen {
		all = append(all, of(r, w.body[i]))
	}
	return all
}

func headerOf(name string) func(*http.Request, string) string {
	return func(r *http.Request, _ string) string { return r.Header.Get(name) }
}

func bodyOf(_ *http.Request, body string) string { return body }

// TestWhatTheFlagsOfCheckSayIsSent holds the flags to what comes to the API. Each
// run first sends three operations and one of them again.
func TestWhatTheFlagsOfCheckSayIsSent(t *testing.T) {
	t.Parallel()
	const good = `{"amount":2500,"currency":"USD"}`
	for _, tt := range []struct {
		name string
		args []string
		of   func(*http.Request, string) string
		want []string // of the requests after those four
		says string
	}{
		{"-X is the method", []string{"-X", "put", "--run=replay/executes"}, func(r *http.Request, _ string) string { return r.Method }, []string{"PUT", "PUT"}, "pass         MUST     identity replay/executes"},
		{"--tenant-header names two callers", []string{"--tenant-header=X-Tenant: a, b", "--run=scope/tenant"}, headerOf("X-Tenant"), []string{"a", "b"}, "pass         MUST     identity scope/tenant"},
		{"--mismatch-pointer names what is changed", []string{"--mismatch-pointer=/currency", "--run=mismatch/refused"}, bodyOf, []string{`{"amount":2500,"currency":"USC"}`, good, `{"amount":2500,"currency":"USC"}`, good}, "pass         MUST     identity mismatch/refused"},
		{"Without it the first value is changed", []string{"--run=mismatch/refused"}, bodyOf, []string{`{"amount":2501,"currency":"USD"}`, good, `{"amount":2501,"currency":"USD"}`, good}, "pass"},
		{"--mismatch-data is the other body", []string{"--mismatch-data", `{"amount":1}`, "--run=mismatch/refused"}, bodyOf, []string{`{"amount":1}`, good, `{"amount":1}`, good}, "pass"},
		{"--refused-data is sent twice", []string{"--refused-data", `{"price":1}`, "--run=failure/refused-again"}, bodyOf, []string{`{"price":1}`, `{"price":1}`}, "pass         SHOULD   bytes    failure/refused-again        400 first, then 400"},
		{"--failing-data is sent three times", []string{"--failing-data", `{"amount":5}`, "--run=failure/error-again"}, bodyOf, []string{`{"amount":5}`, `{"amount":5}`, `{"amount":5}`}, "setup-failed MUST              failure/error-again          the body that cannot be carried out got 201"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, stdout := wired(t, append([]string{"-d", good}, tt.args...)...)
			assert.Contains(t, stdout, tt.says)
			got := w.each(tt.of)
			assert.Equal(t, got[4:], tt.want, stdout)
		})
	}
	t.Run("{{unique}} is new for each operation and the same in its repetition", func(t *testing.T) {
		t.Parallel()
		w, _ := wired(t, "-d", `{"amount":7,"order":"{{unique}}"}`, "--run=replay/executes")
		bodies := w.each(bodyOf)
		assert.Equal(t, len(bodies), 6)
		assert.Equal(t, bodies[3], bodies[0], "the repetition of the first")
		assert.Equal(t, bodies[5], bodies[4], "that of the last")
		different := make(map[string]bool)
		for _, body := range bodies {
			different[body] = true
		}
		assert.Equal(t, len(different), 4)
	})
	t.Run("--bare-keys and --key-header say how the key is sent", func(t *testing.T) {
		t.Parallel()
		w, _ := wired(t, "-d", good, "--bare-keys", "--key-header=X-Request-Id")
		key := w.each(headerOf("X-Request-Id"))[0]
		assert.True(t, len(key) == 36 && !strings.Contains(key, `"`), "a bare key: %s", key)
		assert.Equal(t, w.each(headerOf("Idempotency-Key"))[0], "")
	})
	t.Run("--yes-this-is-a-test-system allows another host", func(t *testing.T) {
		t.Parallel()
		address := strings.Replace(serveBroken(t, brokentest.None), "127.0.0.1", "0.0.0.0", 1) + brokentest.OrdersPath
		args := []string{"check", address, "-H", "Authorization: " + brokentest.BearerToken, "-d", good, "--run=replay/executes"}
		code, _, stderr := runHere(t, args...)
		assert.Equal(t, code, exitUsage)
		assert.Contains(t, stderr, "0.0.0.0 is not this machine")
		_, stdout, _ := runHere(t, append(args, "--yes-this-is-a-test-system")...)
		assert.Contains(t, stdout, "pass         MUST     identity replay/executes")
	})
}

// wired runs a check against the API behind a wire.
func wired(t *testing.T, args ...string) (*wire, string) {
	t.Helper()
	w := &wire{}
	srv := httptest.NewServer(w.before(brokentest.New(brokentest.None)))
	t.Cleanup(srv.Close)
	_, stdout, stderr := runHere(t, append([]string{"check", srv.URL + brokentest.OrdersPath, "-H", "Authorization: " + brokentest.BearerToken}, args...)...)
	assert.Equal(t, stderr, "")
	return w, stdout
}
