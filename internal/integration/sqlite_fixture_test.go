package integration

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/sqlstore"
)

// commits counts the commits of this process by database file, as SQLite's own
// commit hook sees them.
var commits sync.Map // path → *atomic.Int64

// countCommits installs the hook on every connection that the driver opens.
func countCommits() {
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, dsn string) error {
		hooks, ok := conn.(sqlite.HookRegisterer)
		if !ok {
			return errors.New("the driver has no commit hook")
		}
		uri, err := url.Parse(dsn)
		if err != nil {
			return err
		}
		n := commitsOf(uri.Path)
		hooks.RegisterCommitHook(func() int32 {
			n.Add(1)
			return 0
		})
		return nil
	})
}

func commitsOf(path string) *atomic.Int64 {
	n, _ := commits.LoadOrStore(path, new(atomic.Int64))
	return n.(*atomic.Int64) //nolint:forcetypeassert // the map holds nothing else.
}

// sqliteStore is a store with what a test wants to know about it.
type sqliteStore struct {
	*sqlstore.Store

	handles *sqlstore.Handles
	path    string
	clock   testhook.Clock
}

// businessTable is what the work of joined mode writes.
const businessTable = `CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, key TEXT NOT NULL)`

const insertPayment = `INSERT INTO payments (key) VALUES (?)`

// openSQLite opens the store at path, which another process may have too. The
// clock is kept beside it.
func openSQLite(ctx context.Context, driverName, path string) (*sqliteStore, error) {
	clock, err := testhook.NewClock(path + ".clock")
	if err != nil {
		return nil, err
	}
	h, err := sqlstore.OpenSQLite(driverName, path)
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{handles: h, path: path, clock: clock}
	if err = sqlstore.Migrate(ctx, h); err == nil {
		s.Store, err = sqlstore.New(ctx, h, sqlstore.Config{Hooks: clock.Hooks()})
	}
	if err == nil {
		_, err = h.Write.ExecContext(ctx, businessTable)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

// newSQLite returns a new store, closed when the test ends.
func newSQLite(t testing.TB) *sqliteStore {
	t.Helper()
	return newSQLiteOn(t, "sqlite")
}

func newSQLiteOn(t testing.TB, driverName string) *sqliteStore {
	t.Helper()
	s, err := openSQLite(context.Background(), driverName, filepath.Join(t.TempDir(), "semel.db"))
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.handles.Close()) })
	return s
}

func (s *sqliteStore) payments(t testing.TB) int {
	t.Helper()
	var n int
	assert.NoError(t, s.handles.Read.QueryRow("SELECT count(*) FROM payments").Scan(&n))
	return n
}

// pay is the work of joined mode: one row in the business table.
func pay(ctx context.Context) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertPayment, "paid")
	return err
}

var created = semel.Completion{
	Verdict: semel.VerdictKeep,
	Reply:   semel.Reply{Status: 201, Header: semel.Header{"Location": {"/payments/1"}}, Body: []byte(`{"id":1}`)},
}

// payOnce is pay as the work of a guard.
func payOnce(ctx context.Context) semel.Completion {
	if err := pay(ctx); err != nil {
		return semel.Completion{}
	}
	return created
}

func newGuard(t testing.TB, s semel.Store, cfg semel.Config) *semel.Guard {
	t.Helper()
	g, err := semel.New(s, semel.Resume(semel.Forever), cfg)
	assert.NoError(t, err)
	return g
}

// joined is a call in joined mode whose effects are all in the transaction.
func joined(key string) semel.Call {
	return semel.Call{
		Scope:       "payments:c_1",
		Key:         key,
		Fingerprint: semel.FingerprintOf([]byte(key)),
		Mode:        semel.Joined,
		AllInTx:     true,
	}
}

// beginFor are the parameters of a claim, for tests of the store alone.
func beginFor(key string) semel.BeginParams {
	return semel.BeginParams{
		Scope:        "payments:c_1",
		Key:          key,
		Fingerprint:  semel.FingerprintOf([]byte(key)),
		Token:        semel.NewToken(),
		OperationID:  semel.NewOperationID(semel.DefaultService, "payments:c_1", key, 0),
		Lease:        time.Minute,
		ResumeWithin: semel.Forever,
	}
}

func doneWith(body string) semel.FinishParams {
	return semel.FinishParams{
		To:        semel.StateDone,
		KeepReply: true,
		Reply:     semel.Reply{Status: 201, Body: []byte(body)},
		Retention: time.Hour,
	}
}

// process is a child that speaks with the test in lines.
type process struct {
	*exec.Cmd

	in    io.WriteCloser
	lines *bufio.Scanner
}

// command returns the test program in one of its roles.
func command(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0]) //nolint:gosec // it is this program.
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// start starts a child and kills it when the test ends, whose output has what
// the child says of its errors.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	assert.NoError(t, err)
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended.
		cmd.Wait()         //nolint:errcheck // the same.
	})
	return &process{Cmd: cmd, in: in, lines: bufio.NewScanner(out)}
}

// line waits for the child's next line.
func (p *process) line(t testing.TB) string {
	t.Helper()
	if !p.lines.Scan() {
		late := time.AfterFunc(patience, func() { p.Process.Kill() })
		defer late.Stop()
		p.Wait() //nolint:errcheck // the state says it.
		t.Fatalf("the process says no more (%v); its end: %v", p.lines.Err(), p.ProcessState)
	}
	return p.lines.Text()
}

// tell sends the child a line.
func (p *process) tell(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	assert.NoError(t, err)
}

// kill ends the child with SIGKILL and waits until it is gone.
func (p *process) kill(t testing.TB) {
	t.Helper()
	assert.NoError(t, p.Process.Kill())
	p.Wait() //nolint:errcheck // it was killed.
}

const pathVariable = "SEMEL_INTEGRATION_PATH"

// notPaying is work that writes nothing.
func notPaying(context.Context) semel.Completion { return created }
