package integration

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/storetest"
)

func TestSQLiteMeetsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New:     func(t *testing.T) semel.Store { return newSQLite(t) },
		Advance: func(t *testing.T, s semel.Store, d time.Duration) { assert.NoError(t, its(s).clock.Advance(d)) },
		Writes:  func(_ *testing.T, s semel.Store) int64 { return commitsOf(its(s).path).Load() },
		Stall:   func(t *testing.T, s semel.Store) func() { return stall(t, s) },
		Business: &storetest.Business{
			Write: pay,
			Rows:  func(t *testing.T, s semel.Store) int { return its(s).payments(t) },
		},
		Process: func(_ *testing.T, s semel.Store) *exec.Cmd {
			return command("sqlite-worker", pathVariable+"="+its(s).path)
		},
	})
}

func its(s semel.Store) *sqliteStore { return s.(*sqliteStore) } //nolint:forcetypeassert // New returns no other.

// stall takes the write lock on a connection of its own, as another process
// would.
func stall(t testing.TB, s semel.Store) (resume func()) {
	t.Helper()
	other, err := openSQLite(t.Context(), "sqlite", its(s).path)
	assert.NoError(t, err)
	tx, err := other.handles.Write.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	return func() {
		assert.NoError(t, tx.Rollback())
		assert.NoError(t, other.handles.Close())
	}
}

// sqliteWorker is a process that shares a store with the contract's tests. Its
// clock is the file that the test moves.
func sqliteWorker() error {
	s, err := openSQLite(context.Background(), "sqlite", os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	defer s.handles.Close()
	return storetest.Worker{Store: s, Write: pay}.Serve(os.Stdin, os.Stdout)
}
