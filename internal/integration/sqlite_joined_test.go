package integration

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// dbtx is what sqlc generates.
type dbtx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

var _ dbtx = (*sqlstore.JoinedTx)(nil)

// runJoined runs work as a joined attempt of key whose every effect is in the
// transaction.
func runJoined(t *testing.T, s *sqliteStore, work func(ctx context.Context) semel.Completion) (semel.Result, error) {
	t.Helper()
	return newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), work)
}

// mustTx opens the transaction of a joined attempt.
func mustTx(ctx context.Context, t *testing.T) *sqlstore.JoinedTx {
	t.Helper()
	tx, err := sqlstore.Tx(ctx)
	assert.NoError(t, err)
	return tx
}

func TestJoinedTxIsOneTransaction(t *testing.T) {
	t.Parallel()
	t.Run("each call of Tx returns it, and all four methods work in it", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			_, err := mustTx(ctx, t).ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			stmt, err := mustTx(ctx, t).PrepareContext(ctx, insertPayment)
			assert.NoError(t, err)
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, "b")
			assert.NoError(t, err)
			var n int
			assert.NoError(t, mustTx(ctx, t).QueryRowContext(ctx, "SELECT count(*) FROM payments").Scan(&n))
			assert.Equal(t, n, 2, "rows that the transaction sees")
			rows, err := mustTx(ctx, t).QueryContext(ctx, "SELECT key FROM payments")
			assert.NoError(t, err)
			defer rows.Close()
			assert.True(t, rows.Next(), "there is a row")
			assert.NoError(t, rows.Err())
			assert.Equal(t, s.payments(t), 0, "rows that others see")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 2)
	})
	t.Run("a context that ends after it was opened with it does not end it", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			short, cancel := context.WithCancel(ctx)
			tx := mustTx(short, t)
			cancel()
			_, err := tx.ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("savepoints are free to use", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			tx := mustTx(ctx, t)
			for _, query := range []string{
				"INSERT INTO payments (key) VALUES ('kept')", "SAVEPOINT mine",
				"INSERT INTO payments (key) VALUES ('undone')", "ROLLBACK TO mine", "RELEASE mine",
			} {
				_, err := tx.ExecContext(ctx, query)
				assert.NoError(t, err)
			}
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("a constraint that fails leaves it usable", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			tx := mustTx(ctx, t)
			_, err := tx.ExecContext(ctx, insertPayment, nil)
			assert.True(t, err != nil, "NULL is refused")
			_, err = tx.ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, s.payments(t), 1)
	})
}

func TestJoinedTxIsOnlyForJoinedAttempts(t *testing.T) {
	t.Parallel()
	t.Run("elsewhere the error says what to do", func(t *testing.T) {
		t.Parallel()
		_, err := sqlstore.Tx(t.Context())
		assert.ErrorIs(t, err, semel.ErrTxMisuse)
		for _, field := range []string{"semelhttp.Route.Mode", "semel.Call.Mode"} {
			assert.Contains(t, err.Error(), field)
		}
	})
	t.Run("an attempt inside a joined one does not get the transaction of the outer one", func(t *testing.T) {
		t.Parallel()
		outer, inner := newSQLite(t), newSQLite(t)
		leased := joined("k") // the outer one's name as well: a forwarded key
		leased.Mode, leased.AllInTx = semel.Leased, false
		_, err := runJoined(t, outer, func(ctx context.Context) semel.Completion {
			assert.NoError(t, pay(ctx))
			res, err := newGuard(t, inner, semel.Config{}).Run(ctx, leased, func(ctx context.Context) semel.Completion {
				err := pay(ctx)
				assert.ErrorIs(t, err, semel.ErrTxMisuse)
				assert.Contains(t, err.Error(), "belongs to another attempt")
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted, "the inner attempt")
			assert.NoError(t, pay(ctx), "the outer one goes on")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, outer.payments(t), 2)
	})
	t.Run("after the handler has returned it is closed (R37)", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		var (
			tx    *sqlstore.JoinedTx
			stmt  *sql.Stmt
			after context.Context
		)
		_, err := runJoined(t, s, func(ctx context.Context) (done semel.Completion) {
			var err error
			after, tx = context.WithoutCancel(ctx), mustTx(ctx, t) //nolint:fatcontext // it is used after its time.
			stmt, err = tx.PrepareContext(ctx, insertPayment)      //nolint:sqlclosecheck // it is used after its time.
			assert.NoError(t, err)
			return created
		})
		assert.NoError(t, err)
		_, err = tx.ExecContext(after, insertPayment, "late")
		assert.ErrorIs(t, err, semel.ErrTxMisuse)
		assert.Contains(t, err.Error(), "the handler that it belongs to has returned")
		err = tx.QueryRowContext(after, "SELECT 1").Scan(new(int))
		assert.Contains(t, err.Error(), "the handler that it belongs to has returned")
		_, err = tx.QueryContext(after, "SELECT 1") //nolint:rowserrcheck,sqlclosecheck // there are none.
		assert.True(t, err != nil, "a query fails")
		_, err = tx.PrepareContext(after, "SELECT 1") //nolint:sqlclosecheck // there is none.
		assert.True(t, err != nil, "preparing fails")
		_, err = stmt.ExecContext(after, "late")
		assert.True(t, err != nil, "a prepared statement fails")
		_, err = sqlstore.Tx(after)
		assert.True(t, err != nil, "it is not opened again")
		assert.Equal(t, s.payments(t), 0)
	})
	t.Run("a goroutine that the handler left behind cannot open one", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		var after context.Context
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			after = context.WithoutCancel(ctx) //nolint:fatcontext // it is used after its time.
			return created
		})
		assert.NoError(t, err)
		_, err = sqlstore.Tx(after)
		assert.True(t, err != nil, "an error")
		_, err = s.handles.Write.ExecContext(t.Context(), insertPayment, "others")
		assert.NoError(t, err)
	})
}

func TestJoinedTxCannotBeEndedByItsHandler(t *testing.T) {
	t.Parallel()
	t.Run("statements that would are refused, and it goes on", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			tx := mustTx(ctx, t)
			for _, query := range []string{"COMMIT", " rollback", "BEGIN", "end;", "/* x */ COMMIT", "INSERT INTO payments (key) VALUES ('a'); COMMIT"} {
				_, err := tx.ExecContext(ctx, query)
				assert.ErrorIs(t, err, semel.ErrTxMisuse, "Exec of %q", query)
				_, err = tx.PrepareContext(ctx, query) //nolint:sqlclosecheck // there is none.
				assert.True(t, err != nil, "Prepare of %q fails", query)
				_, err = tx.QueryContext(ctx, query) //nolint:rowserrcheck,sqlclosecheck // there are none.
				assert.True(t, err != nil, "Query of %q fails", query)
				assert.Contains(t, tx.QueryRowContext(ctx, query).Scan().Error(), "is refused", query)
			}
			assert.Equal(t, s.payments(t), 0, "rows committed meanwhile")
			_, err := tx.ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, s.payments(t), 1)
	})
	for name, next := range map[string]func(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx){
		"": func(context.Context, *testing.T, *sqlstore.JoinedTx) {},
		", though a statement fails then": func(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx) {
			t.Helper()
			_, err := tx.ExecContext(ctx, insertPayment, nil)
			assert.True(t, err != nil, "an error")
		},
	} {
		endedBehind := func(t *testing.T, ends semel.Completion) (semel.Result, semel.Record, error) {
			t.Helper()
			tap, driver := newTap(t)
			s := newSQLiteOn(t, driver)
			res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
				tx := mustTx(ctx, t)
				_, err := tx.ExecContext(ctx, insertPayment, "a")
				assert.NoError(t, err)
				endBehind(ctx, t, tap, tx)
				next(ctx, t, tx)
				return ends
			})
			rec, getErr := s.Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, getErr)
			return res, rec, err
		}
		t.Run("one that ended all the same is never taken for committed"+name, func(t *testing.T) {
			t.Parallel()
			res, rec, err := endedBehind(t, created)
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			assert.Equal(t, rec.State, semel.StateRunning, "the claim is left")
		})
		t.Run("nor for undone"+name, func(t *testing.T) {
			t.Parallel()
			res, rec, err := endedBehind(t, semel.Completion{Verdict: semel.VerdictNotApplied})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			assert.Equal(t, rec.State, semel.StateUnknown)
		})
	}
}

// endBehind ends the transaction on its connection without the wrapper seeing
// it, as a function of the database could: the tap runs COMMIT instead of the
// statement.
func endBehind(ctx context.Context, t *testing.T, d *tap, tx *sqlstore.JoinedTx) {
	t.Helper()
	d.swap("SELECT 'go'", "COMMIT")
	defer d.swap("", "")
	_, err := tx.ExecContext(ctx, "SELECT 'go'")
	assert.NoError(t, err)
}

func TestJoinedCommit(t *testing.T) {
	t.Parallel()
	isCommit := func(query string) bool { return query == "COMMIT" }
	errDisk := errors.New("disk I/O error")

	t.Run("refused by a deferred constraint is known undone, and released", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		_, err := s.handles.Write.Exec(`CREATE TABLE refunds (payment INTEGER REFERENCES payments (id) DEFERRABLE INITIALLY DEFERRED)`)
		assert.NoError(t, err)
		res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			tx := mustTx(ctx, t)
			_, err := tx.ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			_, err = tx.ExecContext(ctx, "INSERT INTO refunds VALUES (12345)")
			assert.NoError(t, err)
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.Contains(t, err.Error(), "FOREIGN KEY")
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0)
		res, err = runJoined(t, s, payOnce)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted, "the next attempt")
	})
	t.Run("without an answer is looked up, and found done", func(t *testing.T) {
		t.Parallel()
		tap, name := newTap(t)
		s := newSQLiteOn(t, name)
		res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			done := payOnce(ctx)
			tap.fail(nil, func(query string) error {
				if isCommit(query) {
					return errDisk
				}
				return nil
			})
			return done
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("without an answer that did not happen leaves the claim", func(t *testing.T) {
		t.Parallel()
		tap, name := newTap(t)
		s := newSQLiteOn(t, name)
		_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			done := payOnce(ctx)
			tap.fail(func(query string) error {
				if isCommit(query) || query == "ROLLBACK" {
					return errDisk
				}
				return nil
			}, nil)
			return done
		})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		tap.fail(nil, nil)
		assert.Equal(t, s.payments(t), 0)
		_, err = s.handles.Write.Exec(insertPayment, "others")
		assert.NoError(t, err, "the writer is free: the connection that could not roll back was closed")
	})
	for _, c := range []struct {
		name string
		err  error
		code error
		want semel.State
	}{
		{"refused because it is busy is known undone", coded(517), semel.ErrCommitRefused, semel.StateReleased},     // SQLITE_BUSY_SNAPSHOT
		{"that failed on the disk is not known undone", coded(1034), semel.ErrStoreUnavailable, semel.StateRunning}, // SQLITE_IOERR_FSYNC
		{"that failed with a driver that has no codes is not known undone", errDisk, semel.ErrStoreUnavailable, semel.StateRunning},
	} {
		t.Run(c.name+", though ROLLBACK succeeds", func(t *testing.T) {
			t.Parallel()
			tap, name := newTap(t)
			s := newSQLiteOn(t, name)
			_, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
				done := payOnce(ctx)
				tap.fail(func(query string) error {
					if !isCommit(query) {
						return nil
					}
					tap.fail(nil, nil) // the next is that of the release
					return c.err
				}, nil)
				return done
			})
			assert.ErrorIs(t, err, c.code)
			assert.ErrorIs(t, err, c.err)
			rec, err := s.Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, err)
			assert.Equal(t, rec.State, c.want)
			assert.Equal(t, s.payments(t), 0)
		})
	}
	t.Run("that is not sent, because the reply cannot be saved beside the rows, is known undone", func(t *testing.T) {
		t.Parallel()
		tap, name := newTap(t)
		s := newSQLiteOn(t, name)
		res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			done := payOnce(ctx)
			tap.fail(func(query string) error {
				if !strings.HasPrefix(query, "UPDATE main.semel_records") {
					return nil
				}
				tap.fail(nil, nil) // it is the first that fails: the next is the release
				return errDisk
			}, nil)
			return done
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.ErrorIs(t, err, errDisk)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0)
	})
	t.Run("of a superseded attempt rolls back (promise 4)", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		first, err := s.Begin(t.Context(), beginFor("k"))
		assert.NoError(t, err)
		assert.NoError(t, s.clock.Advance(2*time.Minute))
		_, err = s.Begin(t.Context(), beginFor("k"))
		assert.NoError(t, err)
		j := s.Join(first.Record.Claim())
		assert.NoError(t, pay(j.Context(t.Context())))
		held, err := j.Commit(t.Context(), doneWith("late"))
		assert.NoError(t, err)
		assert.Equal(t, held, semel.Held{Status: semel.HeldSuperseded, State: semel.StateRunning})
		assert.Equal(t, s.payments(t), 0)
	})
}

// coded is an error as the driver has them, with SQLite's result code.
type coded int

func (c coded) Error() string { return sqlite.ErrorCodeString[int(c)&0xff] }
func (c coded) Code() int     { return int(c) }

func TestJoinedUndoKeepsTheReplyAndNotTheRows(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	declined := semel.Completion{Verdict: semel.VerdictKeep, Undo: true, Reply: semel.Reply{Status: 402}}
	for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
		res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
			assert.NoError(t, pay(ctx))
			return declined
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, want)
		assert.Equal(t, res.Reply.Status, 402)
	}
	assert.Equal(t, s.payments(t), 0)
}

func TestJoinedCommitWritesTheStoresOwnTables(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	for _, key := range []string{"first", "second"} { // which finds what the first has left
		call := joined(key)
		res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), call, func(ctx context.Context) semel.Completion {
			for _, table := range []string{"semel_records", "semel_audit"} {
				_, err := mustTx(ctx, t).ExecContext(ctx, "CREATE TEMP TABLE IF NOT EXISTS "+table+" AS SELECT * FROM main."+table) //nolint:unqueryvet // all that it has
				assert.NoError(t, err)
			}
			return payOnce(ctx)
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		rec, err := s.Get(t.Context(), call.Scope, key)
		assert.NoError(t, err)
		assert.Equal(t, rec.State, semel.StateDone, "what others see")
	}
	assert.Equal(t, s.payments(t), 2)
}
