package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// keyStore is an SQLite file with keys in it, and the --store that names it.
type keyStore struct {
	*sqlstore.Store

	flag string
}

// newKeyStore returns a store without keys.
func newKeyStore(t *testing.T) *keyStore {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.db")
	h, err := sqlstore.OpenSQLite("sqlite", path)
	assert.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	s, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	return &keyStore{s, "--store=sqlite:" + path}
}

const scopeOfKeys = "payments:c_1"

// begin claims a key, in a millisecond of its own: keys are listed by when they
// were started, and by their names within one.
func (s *keyStore) begin(t *testing.T, scope, key string, lease time.Duration) semel.Record {
	t.Helper()
	res, err := s.Begin(t.Context(), semel.BeginParams{
		Scope: scope, Key: key, Fingerprint: semel.FingerprintOf([]byte(key)), Token: semel.NewToken(),
		OperationID: semel.NewOperationID(semel.DefaultService, scope, key, 0), Lease: lease,
	})
	assert.NoError(t, err)
	assert.Eventually(t, "the clock has moved on", func() bool { return time.Now().UnixMilli() > res.Record.FirstStarted.UnixMilli() })
	return res.Record
}

// end finishes it.
func (s *keyStore) end(t *testing.T, rec semel.Record, to semel.State) {
	t.Helper()
	_, err := s.Finish(t.Context(), rec.Claim(), semel.FinishParams{
		To: to, KeepReply: to == semel.StateDone, Retention: time.Hour,
		Reply: semel.Reply{Status: 201, Header: semel.Header{"Location": {"/1"}}, Body: []byte("secret reply")},
	})
	assert.NoError(t, err)
}

// inAllStates makes a key in each state, named for it.
func (s *keyStore) inAllStates(t *testing.T) {
	t.Helper()
	s.begin(t, scopeOfKeys, "running", time.Hour)
	s.begin(t, scopeOfKeys, "lapsed", time.Nanosecond)
	s.end(t, s.begin(t, scopeOfKeys, "unknown", time.Hour), semel.StateUnknown)
	s.end(t, s.begin(t, scopeOfKeys, "done", time.Hour), semel.StateDone)
	s.end(t, s.begin(t, scopeOfKeys, "released", time.Hour), semel.StateReleased)
}

func operationOf(key string) string {
	return semel.NewOperationID(semel.DefaultService, scopeOfKeys, key, 0).String()
}

// keys runs "semel keys" on the store, which must succeed, and returns what it
// prints.
func (s *keyStore) keys(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := runHere(t, append([]string{"keys", args[0], s.flag}, args[1:]...)...)
	assert.Equal(t, code, exitDone, "%v: %s%s", args, stdout, stderr)
	return stdout
}

// refused runs it, which must end with that code, and returns the error.
func (s *keyStore) refused(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := runHere(t, append([]string{"keys", args[0], s.flag}, args[1:]...)...)
	assert.Equal(t, code, want, "%v: %s%s", args, stdout, stderr)
	return stderr
}

// states lists "key=state" of each line of JSON.
func states(t *testing.T, lines string) string {
	t.Helper()
	var all []string
	for line := range strings.Lines(lines) {
		var v keyView
		assert.NoError(t, json.Unmarshal([]byte(line), &v), "%s", line)
		state := v.State
		if v.Lapsed {
			state = "lapsed"
		}
		all = append(all, v.Key+"="+state)
	}
	return strings.Join(all, ", ")
}

func TestKeysAreListedTheOldestFirst(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	assert.Equal(t, s.keys(t, "list"), "no keys\n")
	s.inAllStates(t)
	list := func(args ...string) string {
		return states(t, s.keys(t, append([]string{"list", "--json", "--show-keys"}, args...)...))
	}
	const all = "running=running, lapsed=lapsed, unknown=unknown, done=done, released=released"
	assert.Equal(t, list(), all)
	assert.Equal(t, list("--limit=0"), all)
	assert.Equal(t, list("--limit=2"), "running=running, lapsed=lapsed")
	assert.Equal(t, list("--state=unknown,done", "--state=released"), "unknown=unknown, done=done, released=released")
	assert.Equal(t, list("--state=lapsed"), "lapsed=lapsed")
	assert.Equal(t, list("--state=lapsed", "--limit=1"), "lapsed=lapsed", "beyond a page without any")
	assert.Equal(t, list("--state=lapsed,done", "--limit=0"), "lapsed=lapsed, done=done")
	assert.Equal(t, list("--state=lapsed,running"), "running=running, lapsed=lapsed")
	assert.Equal(t, list("--scope="+scopeOfKeys, "--state=done"), "done=done")
	assert.Equal(t, list("--scope=another"), "")
	assert.Equal(t, list("--older-than=1h"), "")

	table := s.keys(t, "list")
	assert.Equal(t, strings.Count(table, "\n"), 6, "lines of\n%s", table)
	// The column is as wide as the oldest age, which a slow machine makes 10s.
	aged := regexp.MustCompile(` +\d+s +`).ReplaceAllString(table, " (age) ")
	for _, want := range []string{
		"OPERATION", operationOf("done") + "  done (age) 1        201    payments:c_1  sha256:" + keyDigest("done"),
		operationOf("lapsed") + "  lapsed ",
	} {
		assert.Contains(t, aged, want)
	}
	_, _, stderr := runHere(t, "keys", "list", s.flag, "--limit=2")
	assert.Contains(t, stderr, "these are the first 2")
}

func TestMoreKeysThanAPageHasAreAllListed(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "many keys, claimed one after the other")
	s := newKeyStore(t)
	for i := range listPage + 3 {
		s.begin(t, scopeOfKeys, fmt.Sprint(i), time.Nanosecond)
	}
	for _, command := range []string{"list", "stuck"} {
		lines := s.keys(t, command, "--limit=0", "--older-than=0s", "--json")
		assert.Equal(t, strings.Count(lines, "\n"), listPage+3, "of %s", command)
		lines = s.keys(t, command, fmt.Sprint("--limit=", listPage+1), "--older-than=0s", "--json")
		assert.Equal(t, strings.Count(lines, "\n"), listPage+1, "of %s", command)
	}
}

func TestWhatIsStuckWaitsForSomebody(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	assert.Equal(t, states(t, s.keys(t, "stuck", "--older-than=0s", "--json", "--show-keys")), "lapsed=lapsed, unknown=unknown")
	assert.Equal(t, s.keys(t, "stuck"), "no stuck keys older than 1h; 2 younger\n")
	assert.Equal(t, s.keys(t, "stuck", "--older-than=90m", "--scope=nobody's"), "no stuck keys\n")
	assert.Equal(t, s.keys(t, "list", "--scope=nobody's"), "no such keys\n")
	assert.Equal(t, s.keys(t, "list", "--older-than=90s", "--state=unknown"), "no such keys older than 1m30s; 1 younger\n")
	assert.Equal(t, s.keys(t, "list", "--older-than=90s", "--state=lapsed"), "no such keys older than 1m30s; 1 younger\n")
}

func TestTheLeaseIsShownOfWhatRuns(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	for key, want := range map[string]string{"running": "lease ends", "lapsed": "lease ended", "unknown": "", "done": "", "released": ""} {
		shown := s.keys(t, "show", "--operation="+operationOf(key))
		got := regexp.MustCompile(`(?m)^lease \w+`).FindString(shown)
		assert.Equal(t, got, want, "of %s:\n%s", key, shown)
	}
}

func TestKeysAndRepliesAreNotShownUnlessThatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.end(t, s.begin(t, scopeOfKeys, "canary-7f3a", time.Hour), semel.StateDone)
	id := "--operation=" + operationOf("canary-7f3a")
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", id}, {"show", id, "--json"}} {
		text := s.keys(t, args...)
		assert.Contains(t, text, keyDigest("canary-7f3a"))
		assert.True(t, !strings.Contains(text, "canary"), "%v prints the key: %s", args, text)
		assert.True(t, !strings.Contains(text, "secret"), "%v prints the reply: %s", args, text)
		assert.Contains(t, s.keys(t, append(args, "--show-keys")...), "canary-7f3a")
	}
}

// Whatever a client sends as its key, no sign of it reaches the terminal that
// would do anything there.
func TestNoKeyMovesTheCursor(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	for _, key := range []string{"\x1b[2J\x1b]0;x\a", "\x9b2J", "\u009b2J", "a b", "\u202eevil", "\xff\xfe", "two\nlines", `"quoted"`} {
		scope := "scope " + key
		s.begin(t, scope, key, time.Hour)
	}
	for _, c := range []struct {
		args  []string
		lines int
	}{
		{[]string{"list", "--show-keys"}, 9},
		{[]string{"list", "--show-keys", "--json"}, 8},
	} {
		text := s.keys(t, c.args...)
		assert.Equal(t, strings.Count(text, "\n"), c.lines, "lines of %q", text)
		for _, sign := range []string{"\x1b", "\a", "\x9b", "\u202e", "\xff"} {
			assert.True(t, !strings.Contains(text, sign), "%v prints %q in %q", c.args, sign, text)
		}
	}
	var v keyView
	first, _, _ := strings.Cut(s.keys(t, "list", "--show-keys", "--json"), "\n")
	assert.NoError(t, json.Unmarshal([]byte(first), &v))
	assert.Equal(t, v.Key, "\x1b[2J\x1b]0;x\a", "JSON has the key as it is")
	assert.Contains(t, s.keys(t, "list", "--show-keys", "--json"), `"keyBase64":"//4="`)
	assert.Contains(t, s.keys(t, "list", "--show-keys"), `"\xff\xfe"`)
}

func TestSettlingSaysWhatTheKeyWasAndWhatItIs(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	settle := func(key string, args ...string) []string {
		return append([]string{"settle", "--operation=" + operationOf(key), "--actor=ann@example.com", "--reason=asked the bank"}, args...)
	}
	before := states(t, s.keys(t, "list", "--json", "--show-keys"))
	assert.Contains(t, s.refused(t, exitUsage, settle("unknown", "--as=done")...), "nothing was changed; with --yes it would settle the operation as done")
	refusal := s.refused(t, exitFailed, settle("unknown", "--as=not-applied", "--yes")...)
	assert.True(t, regexp.MustCompile(`may still have an effect; wait (6m0|5m\d+)s more, or override`).MatchString(refusal), "got %s", refusal)
	refusal = s.refused(t, exitFailed, settle("unknown", "--as=not-applied", "--handler-deadline=30s", "--settle-delay=10s", "--yes")...)
	assert.True(t, regexp.MustCompile(`wait (40|[123]\d|\d)s more`).MatchString(refusal), "got %s", refusal)
	assert.Contains(t, s.refused(t, exitFailed, settle("running", "--as=done", "--yes")...), "attempt 1 is running; its lease has")
	assert.Contains(t, s.refused(t, exitFailed, settle("done", "--as=done", "--yes")...), "the record is done already")
	assert.Contains(t, s.refused(t, exitFailed, settle("nobody's", "--as=done", "--yes")...), "there is no record of the operation")
	assert.Equal(t, states(t, s.keys(t, "list", "--json", "--show-keys")), before, "after refusals")

	said := s.keys(t, settle("unknown", "--as=done", "--yes")...)
	assert.Equal(t, said, "was  unknown, attempt 1, operation "+operationOf("unknown")+"\n"+
		"is   done, attempt 2, operation "+operationOf("unknown")+", reply not kept\n")

	var change changed
	assert.NoError(t, json.Unmarshal([]byte(s.keys(t, settle("lapsed", "--as=not-applied", "--override", "--yes", "--json")...)), &change))
	assert.Equal(t, change.Before.Lapsed, true)
	assert.Equal(t, change.After.State, "released")
	shown := s.keys(t, "show", "--operation="+operationOf("lapsed"))
	for _, want := range []string{
		"state          released\n", "attempt        2, generation 0\n", "taken over, without the wait, by ann@example.com",
		`settled not applied, without the wait, by ann@example.com: "asked the bank"`,
	} {
		assert.Contains(t, shown, want)
	}
}

func TestSettlingAsDoneMayGiveTheReply(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	body := filepath.Join(t.TempDir(), "reply.json")
	assert.NoError(t, os.WriteFile(body, []byte(`{"id":1}`), 0o600))
	s.keys(t, "settle", "--operation="+operationOf("unknown"), "--as=done", "--actor=ann", "--reason=the bank has it", "--yes",
		"--status=201", "--reply-header=content-type: application/json", "--reply-header=Location:/payments/1", "--reply="+body)
	rec, err := s.Get(t.Context(), scopeOfKeys, "unknown")
	assert.NoError(t, err)
	assert.Equal(t, rec.ReplyKept, true)
	assert.Equal(t, rec.Reply, semel.Reply{
		Status: 201, Header: semel.Header{"Content-Type": {"application/json"}, "Location": {"/payments/1"}}, Body: []byte(`{"id":1}`),
	})
}

func TestStartOverNeedsTheNameThatTheServiceHas(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	args := []string{
		"settle", "--operation=" + operationOf("unknown"), "--as=start-over", "--override",
		"--actor=ann", "--reason=the bank refuses the id", "--yes",
	}
	assert.Contains(t, s.refused(t, exitFailed, append(args, "--service=shop")...), "--service is shop, under which this key has the operation id")
	s.keys(t, args...)
	anew := semel.NewOperationID(semel.DefaultService, scopeOfKeys, "unknown", 1).String()
	assert.Contains(t, s.keys(t, "show", "--operation="+anew), "generation 1")
}

func TestErasingTakesTheReplyAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	erase := func(key string, args ...string) []string {
		return append([]string{"erase", "--scope=" + scopeOfKeys, "--key=" + key, "--actor=ann", "--reason=request 17"}, args...)
	}
	assert.Contains(t, s.refused(t, exitUsage, erase("done")...), "nothing was changed; with --yes it would erase the reply")
	assert.Contains(t, s.refused(t, exitFailed, erase("unknown", "--yes")...), "settle it first")
	assert.Contains(t, s.refused(t, exitFailed, erase("released", "--yes")...), "the record is released and has no reply to erase")
	assert.Contains(t, s.refused(t, exitFailed, erase("nobody's", "--yes")...), "there is no record of this key")
	assert.Contains(t, s.keys(t, erase("done", "--yes")...), "reply 201\nis   done, attempt 1, operation "+operationOf("done")+", reply 201, not kept\n")
	assert.Contains(t, s.refused(t, exitFailed, erase("done", "--yes")...), "has no reply to erase")
	var shown fullView
	assert.NoError(t, json.Unmarshal([]byte(s.keys(t, "show", "--operation="+operationOf("done"), "--json")), &shown))
	assert.Equal(t, shown.Kept, false)
	assert.Equal(t, len(shown.Audit), 1, "lines of the log")
	assert.Equal(t, shown.Audit[0].What, "reply erased")
	assert.Equal(t, shown.Audit[0].Actor, "ann")
}

func TestABadCommandLineOnKeysSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"keys nope":                                                  `there is no command "nope" below "keys"`,
		"keys list extra":                                            "does not take arguments",
		"keys list":                                                  "--store is required (or $SEMEL_STORE)",
		"keys list --store=keys.db":                                  "no scheme before a colon",
		"keys list --store=memory":                                   "no other process can look at them",
		"keys list --store=redis:secret":                             "of the form redis://",
		"migrate up --store=redis://127.0.0.1":                       "needs no migrations",
		"keys list --store=ftp://u:secret@h/d":                       "there is no such store; it must be one of sqlite:PATH",
		"keys list --store=mysql://u:secret@h":                       "of the form mysql://",
		"keys list --store=sqlite:x --limit=-1":                      "--limit is -1",
		"keys list --store=sqlite:x --older-than=-1s":                "--older-than is -1s",
		"keys list --store=sqlite:x --state=stuck":                   `--state has "stuck"; there are running, lapsed, unknown`,
		"keys show --store=sqlite:x":                                 "which one?",
		"keys show --store=sqlite:x --operation=1":                   "--operation is 1; it must be an id",
		"keys show --store=sqlite:x --scope=s":                       "--scope and --key go together",
		"keys show --store=sqlite:x --operation=1 --key=k":           "give either --operation, or --scope and --key",
		"keys erase --store=sqlite:x --scope=s --key=k":              "--actor is required",
		"keys erase --actor=a --scope=s --key=k":                     "--reason is required",
		"keys settle --actor=a --reason=r":                           `--as is ""; it must be done, not-applied or start-over`,
		"keys settle --as=done --override":                           "--override goes with not-applied and start-over",
		"keys settle --as=start-over --status=201":                   "a reply goes with --as done",
		"keys settle --as=done --reply=x":                            "--status is 0; a reply has one of 200 to 599",
		"keys settle --as=done --status=201 --reply-header=x":        "it must be a name, a colon and a value",
		"keys settle --as=done --status=201 --reply-header=date:now": "which is no part of a saved reply",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runHere(t, strings.Fields(line)...)
			assert.Equal(t, code, exitUsage)
			assert.Equal(t, stdout, "")
			assert.Contains(t, stderr, want)
			assert.Contains(t, stderr, "--help")
			assert.True(t, !strings.Contains(stderr, "secret"), "no password in %s", stderr)
		})
	}
}

func TestAStoreThatIsNotThereIsAClearFailure(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.db")
	empty := filepath.Join(t.TempDir(), "empty.db")
	assert.NoError(t, os.WriteFile(empty, nil, 0o600))
	for flag, want := range map[string]string{
		"sqlite:" + missing: "there is no file " + missing,
		"sqlite:" + empty:   `migrate it first, with sqlstore.Migrate or "semel migrate up --store …"`,
		"postgres://u:secret@127.0.0.1:1/d?connect_timeout=2": "the store cannot be reached",
		"mysql://u:secret@127.0.0.1:1/d":                      "the store cannot be reached",
		"redis://u:secret@127.0.0.1:1/0":                      "the store cannot be reached",
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runHere(t, "keys", "list", "--store="+flag)
			assert.Equal(t, code, exitFailed)
			assert.Contains(t, stderr, want)
			assert.True(t, !strings.Contains(stderr, "secret"), "no password in %s", stderr)
		})
	}
	_, err := os.Stat(missing)
	assert.ErrorIs(t, err, os.ErrNotExist, "no file was made")
}

func TestTheStoreMayComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newKeyStore(t)
	s.inAllStates(t)
	cmd := program(t, "keys", "list", "--json")
	cmd.Env = append(cmd.Env, storeVariable+"="+strings.TrimPrefix(s.flag, "--store="))
	lines, err := cmd.Output()
	assert.NoError(t, err)
	assert.Equal(t, strings.Count(string(lines), "\n"), 5)
}

// A service that was killed while it worked leaves a key behind, and runs
// again while somebody settles it.
func TestAKeyOfAKilledServiceIsSettledWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.arm(t, payments.KilledBeforeCharge)
	assert.Equal(t, d.pay(t, "k1").Status, 0, "no answer")
	s := &keyStore{flag: "--store=sqlite:" + filepath.Join(d.data, "service.db")}
	var stuck keyView
	assert.Eventually(t, "the key is stuck", func() bool {
		line := s.keys(t, "stuck", "--older-than=0s", "--json", "--show-keys")
		return json.Unmarshal([]byte(line), &stuck) == nil
	})
	assert.Equal(t, stuck.Key, "k1")
	assert.Equal(t, stuck.Lapsed, true)

	settle := []string{"settle", "--operation=" + stuck.Operation, "--actor=ann", "--reason=the bank has no charge", "--handler-deadline=30s", "--yes"}
	assert.Contains(t, s.refused(t, exitFailed, append(settle, "--as=not-applied")...), "or override")
	s.keys(t, append(settle, "--as=not-applied", "--override")...)
	assert.Equal(t, s.keys(t, "stuck", "--older-than=0s", "--json"), "", "stuck afterwards")

	assert.Equal(t, d.payUntil(t, "k1").Status, http.StatusCreated, "the key is free")
	assert.Equal(t, d.ledger(t)[payments.Keyed], once)

	d.arm(t, payments.KilledAfterCharge)
	assert.Equal(t, d.pay(t, "k2").Status, 0, "no answer")
	assert.Eventually(t, "the other key is stuck", func() bool {
		line := s.keys(t, "stuck", "--older-than=0s", "--json")
		return json.Unmarshal([]byte(line), &stuck) == nil
	})
	s.keys(t, "settle", "--operation="+stuck.Operation, "--as=done", "--actor=ann", "--reason=the bank has the charge", "--yes")
	var repeat answer
	assert.Eventually(t, "the service is up", func() bool {
		repeat = d.pay(t, "k2")
		return repeat.Status != 0 && repeat.Status != http.StatusBadGateway
	})
	assert.Equal(t, repeat.Status, http.StatusConflict)
	assert.Contains(t, repeat.Body, "reply-not-kept")
	assert.Equal(t, d.ledger(t)[payments.Keyed].Charges, int64(2), "charges of two orders")
}
