package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
)

// checked runs semel check against a broken server, or the sound one.
func checked(t *testing.T, m brokentest.Mistake, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	srv := httptest.NewServer(brokentest.New(m))
	t.Cleanup(srv.Close)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "HOST", srv.URL)
	}
	return runHere(t, append([]string{
		"check", srv.URL + brokentest.OrdersPath, "-H", "Authorization: " + brokentest.BearerToken,
		"-H", "Content-Type: application/json", "-d", `{"amount":2500,"currency":"USD"}`,
	}, args...)...)
}

func TestCheckExitsWithItsVerdict(t *testing.T) {
	t.Parallel()
	few := []string{"--run=replay/executes", "--run=mismatch/executes", "--run=mismatch/refused", "--run=concurrency/2"}
	t.Run("0 for a sound API, by what its replies name", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := checked(t, brokentest.None, few...)
		assert.Equal(t, code, exitDone, stdout, stderr)
		assert.Contains(t, stdout, "Executions were told apart by /id, Location.")
		assert.Contains(t, stdout, ": safe\n")
	})
	t.Run("0 for a sound API, by counting", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := checked(t, brokentest.None, append([]string{"--observe=HOST" + brokentest.EffectsPath, "--observe-pointer=/orders"}, few...)...)
		assert.Equal(t, code, exitDone, stdout, stderr)
		assert.Contains(t, stdout, "counted")
	})
	t.Run("1 for a broken one, with the history and a script that shows it", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := checked(t, brokentest.IgnoresTheKey, few...)
		assert.Equal(t, code, exitFailed)
		for _, want := range []string{
			"fail         MUST     identity replay/executes",
			"Expected: One execution.",
			"> Authorization: ***",
			"< 201 Created",
			`for i in $(seq 2); do curl -i -sS -X POST -H 'Authorization: '"$AUTHORIZATION"`,
			"/orders: not safe\n",
		} {
			assert.Contains(t, stdout, want)
		}
		assert.True(t, !strings.Contains(stdout, brokentest.BearerToken), "no secret is printed")
	})
	t.Run("3 where nothing can be told", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := checked(t, brokentest.None, append([]string{"--ignore=/id", "--ignore=Location"}, few...)...)
		assert.Equal(t, code, 3)
		assert.Contains(t, stdout, "/orders: could not be told\n")
		assert.Contains(t, stdout, "no MUST case of replay could be told by identity or better")
	})
	t.Run("3 where the API refuses the request under any key", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := checked(t, brokentest.None, "-d", `{"price":1}`)
		assert.Equal(t, code, 3)
		assert.Contains(t, stdout, "a request under a new key must succeed before anything can be tested; it got 400")
	})
	t.Run("2 for a case that does not exist", func(t *testing.T) {
		t.Parallel()
		code, _, stderr := checked(t, brokentest.None, "--run=replay/never")
		assert.Equal(t, code, exitUsage)
		assert.Contains(t, stderr, `no case is called "replay/never" or begins with it`)
	})
}

func TestCheckAsJSON(t *testing.T) {
	t.Parallel()
	_, stdout, _ := checked(t, brokentest.LooksFirst, "--json", "--run=concurrency/2", "--run=replay/executes", "--skip=replay=not today")
	var report struct {
		Verdict  string
		Findings []struct {
			ID, Status, Says, Evidence string
			History                    []struct{ Status int }
		}
	}
	assert.NoError(t, json.Unmarshal([]byte(stdout), &report))
	assert.Equal(t, len(report.Findings), 2)
	assert.Equal(t, report.Findings[0].Status, "skipped")
	assert.Equal(t, report.Findings[0].Says, "not today")
	assert.Equal(t, report.Findings[1].ID, "concurrency/2")
}

func TestCheckAsksForNewAuthorizationWhenItHasRunOut(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	sound := brokentest.New(brokentest.None)
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		sound.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	script := "if [ -e " + token + " ]; then echo 'Authorization: " + brokentest.BearerToken + "'; else touch " + token + "; echo 'Authorization: old'; fi"
	code, stdout, _ := runHere(t, "check", srv.URL+brokentest.OrdersPath, "-d", `{"amount":1}`, "--auth-command", script, "--run=replay/executes")
	assert.Equal(t, code, exitDone, stdout)
	assert.Contains(t, stdout, "/orders: no verdict\n  of what was asked for (replay/executes) nothing failed;")
	assert.Contains(t, stdout, "pass         MUST     identity replay/executes")
	assert.Equal(t, requests, 1+3+1+2) // one is refused, four tell how it answers, two are the case
}

func TestCheckTellsOfItsCasesAndSendsNothing(t *testing.T) {
	t.Parallel()
	code, stdout, _ := runHere(t, "check", "--list")
	assert.Equal(t, code, exitDone)
	assert.Contains(t, stdout, "lost/reply")
	code, stdout, _ = runHere(t, "check", "--explain", "lost/reply")
	assert.Equal(t, code, exitDone)
	assert.Contains(t, stdout, "Why it costs money: ")
	file := filepath.Join(t.TempDir(), "body.json")
	assert.NoError(t, os.WriteFile(file, []byte(`{"amount":7}`), 0o600))
	code, stdout, _ = runHere(t, "check", "http://127.0.0.1:1/x", "-d", "@"+file, "-H", "Authorization: secret", "--dry-run", "--run=replay")
	assert.Equal(t, code, exitDone)
	for _, want := range []string{"POST http://127.0.0.1:1/x", `{"amount":7}`, "Authorization: ***", "replay/ten"} {
		assert.Contains(t, stdout, want)
	}
	_, stdout, _ = runHere(t, "check", "http://127.0.0.1:1/x", "-d", "{}", "--dry-run", "--run=failure")
	assert.Contains(t, stdout, "A request that the API refuses (--refused-data), twice")
	assert.Contains(t, stdout, "A request that the API cannot carry out (--failing-data), three times")
}

func TestABadCheckIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says string
		args []string
	}{
		{"the address to test is missing", nil},
		{"must be an http or https address with a host", []string{"localhost"}},
		{`with a host, such as http://localhost:8080/payments, not "127.0.0.1:8080/payments"`, []string{"127.0.0.1:8080/payments"}},
		{"example.com is not this machine", []string{"http://example.com"}},
		{"10.0.0.1 is not this machine", []string{"http://127.0.0.1:1", "--observe=http://10.0.0.1", "--observe-pointer=/n"}},
		{"--header must be 'Name: value'", []string{"http://127.0.0.1:1", "-H", "nothing"}},
		{"--data: open", []string{"http://127.0.0.1:1", "-d", "@/does/not/exist"}},
		{"--observe and --observe-pointer go together", []string{"http://127.0.0.1:1", "--observe=http://127.0.0.1:1"}},
		{"--tenant-header must be 'Name: one,two'", []string{"http://127.0.0.1:1", "--tenant-header=X-Tenant"}},
		{"Target.Tenants must be two different callers", []string{"http://127.0.0.1:1", "--tenant-header=X-Tenant: a,a"}},
		{"--skip must be ID=reason", []string{"http://127.0.0.1:1", "--skip=replay"}},
		{"OtherBody and MismatchPointer exclude each other", []string{"http://127.0.0.1:1", "--mismatch-data={}", "--mismatch-pointer=/a"}},
		{`no case is called "x"`, []string{"--explain=x"}},
	} {
		t.Run(tt.says, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runHere(t, append([]string{"check"}, tt.args...)...)
			assert.Equal(t, code, exitUsage)
			assert.Equal(t, stdout, "")
			assert.Contains(t, stderr, tt.says)
		})
	}
}
