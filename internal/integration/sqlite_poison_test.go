package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

const (
	endless   = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO payments (key) SELECT interrupting((SELECT file FROM pragma_database_list)) FROM n`
	returning = endless + " RETURNING id"
	conflict  = "INSERT OR ROLLBACK INTO payments (id, key) VALUES (1, 'twice')"
)

// interrupts holds, by database file, what is called amid an endless statement.
var interrupts sync.Map

// addInterrupting gives SQLite a function that interrupts the statement that
// calls it, if that was asked for.
func addInterrupting() {
	sqlite.MustRegisterScalarFunction("interrupting", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if cancel, ok := interrupts.LoadAndDelete(args[0]); ok {
			cancel.(context.CancelFunc)() //nolint:forcetypeassert // the map holds nothing else.
		}
		return "endless", nil
	})
}

// losses are the ways in which SQLite rolls a transaction back by itself, each
// by every path on which the handler may hear of it, or not listen.
var losses = []struct {
	name string
	lose func(ctx context.Context, tx *sqlstore.JoinedTx) error
	// plain says that it needs no driver that can interrupt a statement.
	plain bool
}{
	{name: "an interrupted Exec", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		_, err := tx.ExecContext(ctx, endless)
		return err
	}},
	{name: "an interrupted prepared Exec", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		stmt, err := tx.PrepareContext(context.WithoutCancel(ctx), endless)
		if err != nil {
			return nil
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx)
		return err
	}},
	{name: "an interrupted query, read row by row", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		rows, err := tx.QueryContext(ctx, returning)
		return lastError(rows, err)
	}},
	{name: "an interrupted prepared query, read row by row", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		stmt, err := tx.PrepareContext(context.WithoutCancel(ctx), returning)
		if err != nil {
			return nil
		}
		defer stmt.Close()
		rows, err := stmt.QueryContext(ctx)
		return lastError(rows, err)
	}},
	{name: "an interrupted query for one row, whose error comes with Scan", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		return tx.QueryRowContext(ctx, returning).Scan(new(int))
	}},
	{name: "an interrupted Exec amid the rows of a query", lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		rows, err := tx.QueryContext(context.WithoutCancel(ctx), "SELECT id FROM payments UNION ALL SELECT 2")
		if err != nil {
			return nil
		}
		rows.Next()
		tx.ExecContext(ctx, endless) //nolint:errcheck // the rows tell.
		return lastError(rows, nil)
	}},
	{name: "a conflict in Exec", plain: true, lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		_, err := tx.ExecContext(ctx, conflict)
		return err
	}},
	{name: "a conflict in a prepared Exec", plain: true, lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		stmt, err := tx.PrepareContext(ctx, conflict)
		if err != nil {
			return nil
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx)
		return err
	}},
	{name: "a full disk", plain: true, lose: func(ctx context.Context, tx *sqlstore.JoinedTx) error {
		var most int
		if err := tx.QueryRowContext(ctx, "PRAGMA max_page_count = 40").Scan(&most); err != nil {
			return nil
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO payments (key) VALUES (hex(zeroblob(1000000)))")
		return err
	}},
}

// lastError reads rows to their end.
func lastError(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(new(int)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func TestJoinedTxIsPoisonedWhenItIsGone(t *testing.T) {
	t.Parallel()
	_, least := newTap(t)
	for _, c := range losses {
		for driver, name := range map[string]string{"sqlite": "", least: ", with a driver that has only what it must"} {
			if driver == least && !c.plain {
				continue
			}
			t.Run("by "+c.name+name+" (R12)", func(t *testing.T) {
				t.Parallel()
				s := newSQLiteOn(t, driver)
				res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
					tx := mustTx(ctx, t)
					before, err := tx.PrepareContext(ctx, insertPayment)
					assert.NoError(t, err)
					defer before.Close()
					_, err = before.ExecContext(ctx, "before")
					assert.NoError(t, err)
					losing := ctx
					if !c.plain {
						cut, cancel := context.WithCancel(ctx)
						defer cancel()
						interrupts.Store(s.path, cancel)
						losing = cut
					}
					assert.True(t, c.lose(losing, tx) != nil, "the loss is reported")
					mustBeGone(ctx, t, tx, before)
					return created // as if nothing had happened
				})
				assert.ErrorIs(t, err, semel.ErrCommitRefused, "it is known that nothing took effect")
				assert.Equal(t, res.Outcome, semel.OutcomeReleased)
				assert.Equal(t, s.payments(t), 0)
				_, err = s.handles.Write.Exec(insertPayment, "others")
				assert.NoError(t, err, "the writer goes on")
			})
		}
	}
	t.Run("by the handler's deadline, and the writer is free", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		g := newGuard(t, s, semel.Config{HandlerDeadline: 10 * time.Second})
		release := make(chan struct{})
		finished := make(chan error, 1)
		_, err := g.Run(t.Context(), joined("k"), func(ctx context.Context) semel.Completion {
			tx := mustTx(ctx, t)
			_, err := tx.ExecContext(ctx, insertPayment, "a")
			assert.NoError(t, err)
			<-release
			_, err = tx.ExecContext(context.WithoutCancel(ctx), insertPayment, "b")
			finished <- err
			return created
		})
		assert.ErrorIs(t, err, semel.ErrStillRunning)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.handles.Write.ExecContext(ctx, insertPayment, "others")
		assert.NoError(t, err, "another writer, while the handler is still running")
		close(release)
		assert.ErrorIs(t, <-finished, semel.ErrStillRunning)
		assert.Eventually(t, "the key is released", func() bool {
			rec, err := s.Get(t.Context(), joined("k").Scope, "k")
			return err == nil && rec.State == semel.StateReleased
		})
		assert.Equal(t, s.payments(t), 1, "rows, that of the other writer")
	})
}

// mustBeGone tries whatever a handler might try next.
func mustBeGone(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx, before *sql.Stmt) {
	t.Helper()
	for name, use := range map[string]func() error{
		"Exec": func() error {
			_, err := tx.ExecContext(ctx, insertPayment, "after")
			return err
		},
		"a query": func() error {
			rows, err := tx.QueryContext(ctx, insertPayment+" RETURNING id", "after")
			return lastError(rows, err)
		},
		"a query for one row": func() error {
			return tx.QueryRowContext(ctx, insertPayment+" RETURNING id", "after").Scan(new(int))
		},
		"Exec of what was prepared before": func() error {
			_, err := before.ExecContext(ctx, "after")
			return err
		},
		"a query of what was prepared before": func() error {
			rows, err := before.QueryContext(ctx, "after")
			return lastError(rows, err)
		},
		"Exec of what is prepared now": func() error {
			stmt, err := tx.PrepareContext(ctx, insertPayment)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, "after")
			return err
		},
	} {
		err := use()
		if err == nil {
			t.Errorf("%s took effect outside the transaction", name)
			continue
		}
		assert.Contains(t, err.Error(), "the transaction is gone", name)
	}
}

func TestJoinedTxThatCouldNotBeOpenedIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), func(ctx context.Context) semel.Completion {
		release := stall(t, s)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := sqlstore.Tx(short)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		release()
		return created // as if nothing had happened
	})
	assert.ErrorIs(t, err, semel.ErrCommitRefused)
	assert.Equal(t, res.Outcome, semel.OutcomeReleased)
	rec, err := s.Get(t.Context(), joined("k").Scope, "k")
	assert.NoError(t, err)
	assert.Equal(t, rec.State, semel.StateReleased)
	assert.Equal(t, s.payments(t), 0)
}

func TestJoinedTxWithOpenRowsOfAWriteIsUndone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  semel.Completion
		code *semel.Error
	}{
		{"when the work is done", created, semel.ErrCommitRefused},
		{"when the work took no effect", semel.Completion{Verdict: semel.VerdictNotApplied}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSQLite(t)
			res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
				rows, err := mustTx(ctx, t).QueryContext(ctx, "INSERT INTO payments (key) VALUES ('a'), ('b'), ('c') RETURNING id") //nolint:rowserrcheck,sqlclosecheck // this is the fault.
				assert.NoError(t, err)
				assert.True(t, rows.Next(), "there is a row")
				return c.end
			})
			if c.code != nil {
				assert.ErrorIs(t, err, c.code)
			} else {
				assert.NoError(t, err)
			}
			assert.Equal(t, res.Outcome, semel.OutcomeReleased)
			assert.Equal(t, s.payments(t), 0)
		})
	}
}
