package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// What a demo does on servers is tried in internal/integration.

// secret is a password that nobody may see.
const secret = "canary-7f3a"

func TestAStoreThatCannotBeMeantIsRefusedWithoutShowingItsURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"oracle://app:" + secret + "@db/shop": "--store is oracle:…, and there is no such store; it must be one of sqlite:PATH, postgres://",
		secret:                                "--store has no scheme before a colon",
		"memory":                              "no other process can look at them",
		"postgres://app:" + secret + "/x@db/shop":             "--store is no URL of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		"postgres://app:" + secret + "%zz@db/shop":            "--store is no URL of the form postgres://",
		"postgres://app:" + secret + "@db/shop?sslmode=maybe": "--store is no URL of the form postgres://",
		"mysql://app:" + secret + "@db":                       "--store is no URL of the form mysql://",
		"mysql://app:" + secret + "%zz@db/shop":               "--store is no URL of the form mysql://",
		"redis://app:" + secret + "%zz@db":                    "--store is no URL of the form redis://",
		"redis:" + secret:                                     "--store is no URL of the form redis://",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"demo", "keys list"} {
				code, stdout, stderr := runHere(t, append(strings.Fields(command), "--store="+url)...)
				assert.Equal(t, code, exitUsage, "%s", command)
				assert.Contains(t, stderr, want)
				assert.True(t, !strings.Contains(stdout+stderr, secret), "the URL is shown: %s%s", stdout, stderr)
			}
		})
	}
}

func TestAServerThatCannotBeReachedIsAClearFailure(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"postgres", "mysql", "redis"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			url := scheme + "://app:" + secret + "@127.0.0.1:1/0"
			for _, args := range [][]string{{"demo", "--no-browser", "--addr=127.0.0.1:0"}, {"demo", "--script=all"}, {"keys", "list"}} {
				code, stdout, stderr := runHere(t, append(args, "--store="+url)...)
				assert.Equal(t, code, exitFailed, "%v: %s", args, stderr)
				assert.Equal(t, stdout, "")
				assert.Contains(t, stderr, "no server can be reached there; is it up, and are host and port in --store right?")
				assert.Contains(t, stderr, "127.0.0.1:1")
				assert.True(t, !strings.Contains(stderr, secret), "the URL is shown: %s", stderr)
			}
		})
	}
}

func TestDemosShareADatabaseAndSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	one, two := startDemo(t, store), startDemo(t, store)
	first, second := one.payUntil(t, "k1"), two.payUntil(t, "k1")
	assert.True(t, !second.replayed() && first.Body != second.Body, "the payment of another demo: %s", second.Body)
	assert.True(t, one.payUntil(t, "k1").replayed(), "its own payment")
	assert.Equal(t, one.ledger(t)[payments.Keyed], once)
	assert.Equal(t, two.ledger(t)[payments.Keyed], once)
	code, listed, stderr := runHere(t, "keys", "list", store)
	assert.Equal(t, code, exitDone, "%s", stderr)
	assert.Equal(t, strings.Count(listed, "/payments:anonymous"), 2, "keys in %s", listed)
}

func TestADemoGoesOnWithTheStoreThatItHad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, store := "--data="+filepath.Join(dir, "data"), "--store=sqlite:"+filepath.Join(dir, "one.db")
	d := startDemo(t, data, store)
	first := d.payUntil(t, "k1")
	assert.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, d.cmd.Wait())
	again := startDemo(t, data, store)
	assert.Equal(t, again.payUntil(t, "k1").Body, first.Body)
	assert.Equal(t, again.ledger(t)[payments.Keyed], once)
	assert.NoError(t, again.cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, again.cmd.Wait())

	old := filepath.Join(dir, "old")
	assert.NoError(t, os.Mkdir(old, 0o700))
	assert.NoError(t, os.WriteFile(filepath.Join(old, "service.db"), nil, 0o600))
	broken := filepath.Join(dir, "broken")
	assert.NoError(t, os.Mkdir(broken, 0o700))
	assert.NoError(t, os.WriteFile(filepath.Join(broken, "demo.json"), []byte(`{"store":"SQLite"}`), 0o600))
	for want, args := range map[string][]string{
		"is it another database? A new demo needs an empty directory": {data, "--store=sqlite:" + filepath.Join(dir, "other.db")},
		"keeps its keys in SQLite, and not in SQLite files":           {data},
		"keeps its keys in SQLite files, and not in SQLite":           {"--data=" + old, store},
		"demo.json: it names no demo":                                 {"--data=" + broken, store},
	} {
		code, _, stderr := output(t, append([]string{"demo", "--no-browser", "--addr=127.0.0.1:0"}, args...)...)
		assert.Equal(t, code, exitFailed, "%v", args)
		assert.Contains(t, stderr, want)
	}
}

func TestTheStoreOfADemoIsTakenFromItsOwnVariable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "service.db")
	cmd := program(t, "demo", "--script=request-lost")
	cmd.Env = append(cmd.Env, demoStoreVariable+"=sqlite:"+file, storeVariable+"=postgres://127.0.0.1:1/other")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "Payments, orders and keys: in SQLite, "+file+", as demo ")
	_, err = os.Stat(file)
	assert.NoError(t, err)
}
