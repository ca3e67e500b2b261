package main

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		assert.Skip(t, "it looks for processes in /proc")
	}
}

func TestNoChildOutlivesTheDemo(t *testing.T) {
	t.Parallel()
	needProc(t)
	for name, signal := range map[string]syscall.Signal{
		"that is interrupted": syscall.SIGINT,
		"that is terminated":  syscall.SIGTERM,
		"that is killed":      syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDemo(t)
			children := []int{d.pid(t, "service"), d.pid(t, "bank")}
			for _, pid := range children {
				assert.True(t, alive(pid), "process %d is up", pid)
			}
			assert.NoError(t, d.cmd.Process.Signal(signal))
			for _, pid := range children {
				assert.Eventually(t, "the child is gone", func() bool { return !alive(pid) })
			}
			err := d.cmd.Wait()
			if signal == syscall.SIGKILL {
				return
			}
			assert.NoError(t, err)
			_, err = os.Stat(d.data)
			assert.ErrorIs(t, err, os.ErrNotExist, "the temporary data")
		})
	}
}

func TestAStoppedChildDoesNotOutliveADemoThatIsKilled(t *testing.T) {
	t.Parallel()
	needProc(t)
	if runtime.GOOS != "linux" {
		assert.SkipForeign(t, "only Linux kills a child whose parent is gone")
	}
	d := startDemo(t)
	pid := d.pid(t, "service")
	assert.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	t.Cleanup(func() {
		if t.Failed() {
			assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	})
	assert.NoError(t, d.cmd.Process.Kill())
	assert.Eventually(t, "the child is gone", func() bool { return !alive(pid) })
}

func TestAPaymentOnItsWayIsFinishedUnlessASecondSignalComes(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string]int{"one signal": 1, "two signals": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDemo(t)
			d.arm(t, payments.Slow) // longer than a second signal takes
			paid := make(chan answer, 1)
			go func() { paid <- d.pay(t, "k1") }()
			assert.Eventually(t, "the payment is on its way", func() bool {
				return strings.Contains(d.send(t, http.MethodGet, "/demo/log", "").Body, `"fault":"slow"`)
			})
			assert.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
			assert.Eventually(t, "nothing new is accepted", func() bool {
				return d.send(t, http.MethodGet, "/demo/log", "").Status == 0
			})
			if signals == 2 {
				assert.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
				assert.Equal(t, (<-paid).Status, 0)
				d.cmd.Wait() //nolint:errcheck // how it ended is in the exit code.
				assert.Equal(t, d.cmd.ProcessState.ExitCode(), exitCode(syscall.SIGTERM))
				return
			}
			assert.Equal(t, (<-paid).Status, http.StatusCreated)
			assert.NoError(t, d.cmd.Wait())
		})
	}
}

func TestAKilledProcessIsStartedAgainAndNothingIsLost(t *testing.T) {
	t.Parallel()
	needProc(t)
	d := startDemo(t)
	first := d.payUntil(t, "k1")
	for _, name := range []string{"service", "bank"} {
		pid := d.pid(t, name)
		assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		assert.Eventually(t, "another "+name, func() bool { return d.pid(t, name) != pid })
		assert.Equal(t, d.payUntil(t, "k1").Body, first.Body)
		d.payUntil(t, "after-"+name)
	}
	assert.Equal(t, d.ledger(t)[payments.Keyed], payments.Account{Orders: 3, Payments: 3, Charges: 3, Charged: 3, Taken: 7500})
}

func TestDataThatIsKeptIsTheSameLedgerAfterARestart(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "made", "by", "the demo")
	d := startDemo(t, "--data="+data)
	first := d.payUntil(t, "k1")
	assert.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, d.cmd.Wait())

	again := startDemo(t, "--data="+data)
	assert.Equal(t, again.ledger(t)[payments.Keyed], once)
	repeat := again.payUntil(t, "k1")
	assert.Equal(t, repeat.Body, first.Body)
	assert.True(t, repeat.replayed(), "it is a replay")
	assert.Equal(t, again.ledger(t)[payments.Keyed], once)
}

func TestPortZeroIsAFreePortForEachDemo(t *testing.T) {
	t.Parallel()
	one, two := startDemo(t), startDemo(t)
	assert.True(t, one.url != two.url, "two addresses")
	one.payUntil(t, "k1")
	assert.Equal(t, one.ledger(t)[payments.Keyed], once)
	assert.Equal(t, two.ledger(t)[payments.Keyed], payments.Account{})
}

func TestAnAddressThatIsTakenIsAClearFailure(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	code, _, stderr := output(t, "demo", "--no-browser", "--addr="+strings.TrimPrefix(d.url, "http://"))
	assert.Equal(t, code, exitFailed)
	assert.Contains(t, stderr, "cannot listen on "+strings.TrimPrefix(d.url, "http://"))
	assert.Contains(t, stderr, "--addr")
}

func TestADatabaseThatCannotBeUsedIsAClearFailure(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"shop.db", "bank.db", "service.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			assert.NoError(t, os.WriteFile(filepath.Join(data, file), []byte(strings.Repeat("no database", 100)), 0o600))
			code, _, stderr := output(t, "demo", "--no-browser", "--addr=127.0.0.1:0", "--data="+data)
			assert.Equal(t, code, exitFailed)
			assert.Contains(t, stderr, "not a database")
		})
	}
}

func TestThePageIsServedAtTheSameAddress(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	a := d.send(t, http.MethodGet, "/", "")
	assert.Equal(t, a.Status, http.StatusOK)
	assert.Contains(t, a.Header.Get("Content-Type"), "text/html")
	assert.Equal(t, d.send(t, http.MethodGet, "/.well-known/idempotency", "").Status, http.StatusOK)
}

func TestAKeyThatIsPrintedDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--verbose")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/charges", strings.NewReader(order))
	assert.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "a\u009b31mb")
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(t, err)
	assert.NoError(t, resp.Body.Close())
	assert.Eventually(t, "the key in the log", func() bool { return strings.Contains(d.log(), `"charge_key":"a\u009b31mb"`) })
	assert.True(t, !strings.Contains(d.log(), "\u009b"), "the key is printed as it is")
}

func TestAPageWhoseNameLeadsHereIsToldNothing(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	for _, path := range []string{"/demo/log", "/", "/shop/live"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, nil)
		assert.NoError(t, err)
		req.Host = "rebound.example"
		resp, err := http.DefaultClient.Do(req)
		assert.NoError(t, err)
		assert.NoError(t, resp.Body.Close())
		assert.Equal(t, resp.StatusCode, http.StatusMisdirectedRequest, "%s", path)
	}
}

func TestNoConnectionIsUsedTwice(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	for _, path := range []string{"/", "/demo/ledger", "/payments/p_1"} {
		resp, err := http.Get(d.url + path)
		assert.NoError(t, err)
		assert.NoError(t, resp.Body.Close())
		assert.True(t, resp.Close, "the connection after %s stays open", path)
	}
}

func TestTheLogShowsWhatSemelSaidAndNoKey(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--verbose")
	d.payUntil(t, "canary-7f3a")
	d.payUntil(t, "canary-7f3a")
	var log string
	assert.Eventually(t, "the lines of both requests", func() bool {
		log = d.send(t, http.MethodGet, "/demo/log", "").Body
		return strings.Contains(log, `\"outcome\":\"executed\"`) && strings.Contains(log, `\"outcome\":\"replayed\"`)
	})
	assert.Eventually(t, "both lines are printed", func() bool { return strings.Count(d.log(), "semel: request") >= 2 })
	assert.True(t, !strings.Contains(log+d.log(), "canary"), "the key is in no log")
}

func TestKeysAreLoggedWhenThatIsAskedFor(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--verbose", "--log-keys")
	d.payUntil(t, "canary-7f3a")
	assert.Eventually(t, "the key in the log", func() bool {
		return strings.Contains(d.log(), `"idempotency_key":"canary-7f3a"`)
	})
}
