package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/check/brokentest"
	"github.com/semel-dev/semel/internal/assert"
)

func TestCheckPrintsWhatMattersFirst(t *testing.T) {
	t.Parallel()
	broken := []string{"--run=replay/executes", "--run=replay/body", "--run=replay/ten", "--run=mismatch/executes", "--run=mismatch/refused", "--run=mismatch/no-harm"}
	t.Run("Failures before all others, and three of them at length", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := checked(t, brokentest.IgnoresTheKey, broken...)
		assert.Equal(t, code, exitFailed)
		lines := strings.Split(stdout, "\n")
		assert.True(t, strings.HasPrefix(lines[0], "POST http://127.0.0.1:"), "it begins with what was tested: %s", lines[0])
		assert.Equal(t, lines[1], "6 cases, seed 1. Executions were told apart by /id, Location.")
		assert.Equal(t, strings.Join(strings.Fields(lines[5]), " "), "result level evidence case what was seen")
		assert.True(t, strings.HasPrefix(lines[6], "fail "), "then come the failures: %s", lines[6])
		assert.Contains(t, stdout, "\n0 pass, 5 fail, 1 warn, 0 info, 0 inconclusive, 0 setup-failed, 0 skipped, in ")
		assert.True(t, strings.LastIndex(stdout, "\nfail ") < strings.Index(stdout, "\nwarn "), "and then the warnings")
		assert.Equal(t, strings.Count(stdout, "To see it again:"), wholeHistories)
		assert.Contains(t, stdout, "2 failures more are not printed at length: --verbose does so")
		assert.Contains(t, stdout, "How that is known: /id in the replies, which is new in each execution, was ")
	})
	t.Run("All of them when asked", func(t *testing.T) {
		t.Parallel()
		_, stdout, _ := checked(t, brokentest.IgnoresTheKey, append([]string{"--verbose"}, broken...)...)
		assert.Equal(t, strings.Count(stdout, "To see it again:"), 5)
	})
	t.Run("By how many effects were counted", func(t *testing.T) {
		t.Parallel()
		_, stdout, _ := checked(t, brokentest.IgnoresTheKey, "--run=replay/ten", "--observe=HOST"+brokentest.EffectsPath, "--observe-pointer=/orders")
		assert.Contains(t, stdout, "Executions were counted by /orders at http://127.0.0.1:")
		assert.Contains(t, stdout, "replay/ten: 10 executions of 10 requests\n")
		assert.Contains(t, stdout, "How that is known: what is counted was 4 before and 14 afterwards, and one execution adds 1\n")
		assert.Contains(t, stdout, "… 7 more of the same kind\n  10.  ")
	})
	t.Run("Help says what each flag takes", func(t *testing.T) {
		t.Parallel()
		_, stdout, _ := runHere(t, "check", "--help")
		for _, want := range []string{"--config FILE ", "--observe URL ", "--observe-pointer POINTER ", "--skip ID=reason ", "-H, --header 'Name: value' ", "-d, --data BODY|@FILE ", "--timeout duration "} {
			assert.Contains(t, stdout, want)
		}
		bare := regexp.MustCompile(`--[a-z-]+ (string|stringArray) `).FindString(stdout)
		assert.Equal(t, bare, "", "what takes just a string")
	})
}

// TestTheScriptOfAFailureShowsItAgain runs what is printed below a failure.
func TestTheScriptOfAFailureShowsItAgain(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		assert.Skip(t, "there is no curl")
	}
	for id, orders := range map[string]int{
		"replay/executes":   2,
		"mismatch/executes": 3,
		"concurrency/10":    11, // and once more when all are answered
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			address := serveBroken(t, brokentest.IgnoresTheKey)
			counted := func() (n int) {
				resp, err := http.Get(address + brokentest.EffectsPath)
				assert.NoError(t, err)
				defer resp.Body.Close()
				var effects struct{ Orders int }
				assert.NoError(t, json.NewDecoder(resp.Body).Decode(&effects))
				return effects.Orders
			}
			_, stdout, _ := runHere(t, "check", address+brokentest.OrdersPath, "-H", "Authorization: "+brokentest.BearerToken, "-d", `{"amount":2500}`, "--run", id)
			_, script, found := strings.Cut(stdout, "To see it again:\n")
			script, _, ended := strings.Cut(script, "\n\n")
			assert.True(t, found && ended, "a script is printed: %s", stdout)
			before := counted()
			cmd := exec.Command("sh", "-c", script)
			cmd.Env = append(os.Environ(), "AUTHORIZATION="+brokentest.BearerToken)
			printed, err := cmd.CombinedOutput()
			assert.NoError(t, err, string(printed))
			assert.Equal(t, counted()-before, orders, "%s\n%s", script, printed)
		})
	}
}

func TestCheckSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := newCheckProgress(&stderr)
		time.Sleep(lineInterval + time.Second)
		p.next(12, 60, check.Case{ID: "lost/stalled"})
		time.Sleep(lineInterval)
		p.end()
		assert.Equal(t, stderr.String(), "semel check: trying whether the API works at all, after 10s\nsemel check: case 12 of 60, lost/stalled, after 20s\n")
	})
}

// TestACheckThatIsStoppedReportsWhatItFound stops a check in its midst, as CI does
// at its own limit.
func TestACheckThatIsStoppedReportsWhatItFound(t *testing.T) {
	t.Parallel()
	const enough = 12
	api := brokentest.New(brokentest.None)
	var requests atomic.Int64
	reached := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n >= enough {
			if n == enough {
				close(reached)
			}
			io.Copy(io.Discard, r.Body) // until then the server does not look whether its client has left
			<-r.Context().Done()
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	cmd := program(t, "check", srv.URL, "--openapi", write(t, "api.yaml", "", openAPI), "-H", "Authorization: "+brokentest.BearerToken,
		"--report=json="+at("r.json"), "--report=junit="+at("r.xml"), "--report=md="+at("r.md"), "--report=sarif="+at("r.sarif"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	assert.NoError(t, cmd.Start())
	go func() {
		<-reached
		cmd.Process.Signal(syscall.SIGTERM)
	}()
	cmd.Wait()
	assert.Equal(t, cmd.ProcessState.ExitCode(), 143, stderr.String())
	assert.Contains(t, stderr.String(), "stopped by a signal (terminated) before it was done")
	assert.Contains(t, stdout.String(), "pass         MUST     identity replay/executes")
	assert.Contains(t, stdout.String(), "the check is incomplete: it was stopped, with ")
	for name, want := range map[string]string{
		"r.json":  `"interrupted": true`,
		"r.xml":   `<error message="incomplete: it was stopped"`,
		"r.md":    "- the check is incomplete: it was stopped, with ",
		"r.sarif": `"executionSuccessful": false`,
	} {
		text, err := os.ReadFile(at(name))
		assert.NoError(t, err)
		assert.Contains(t, string(text), want, name)
	}
}

// TestWhatAServerSaysTooMuchStaysOutOfTheTerminal: a server that speaks before it
// is asked, and another that sends a reply more than it was asked for.
func TestWhatAServerSaysTooMuchStaysOutOfTheTerminal(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(conn net.Conn, n int64){
		"one that speaks first": func(conn net.Conn, _ int64) { io.WriteString(conn, "220 mail.test ESMTP\r\n") },
		"one that answers twice": func(conn net.Conn, n int64) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			body := fmt.Sprintf(`{"id":"order-%d"}`, n)
			fmt.Fprintf(conn, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", len(body), body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			assert.NoError(t, err)
			t.Cleanup(func() { listener.Close() })
			go func() {
				for n := int64(1); ; n++ {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						serve(conn, n)
						io.Copy(io.Discard, conn) // until the client has left
					}()
				}
			}()
			_, stdout, stderr := output(t, "check", "http://"+listener.Addr().String(), "-d", `{"amount":1}`, "--run=replay", "--json")
			assert.Equal(t, stderr, "")
			var report struct{ Verdict string }
			assert.NoError(t, json.Unmarshal([]byte(stdout), &report))
			assert.True(t, report.Verdict != "safe", "%s", report.Verdict)
		})
	}
}
