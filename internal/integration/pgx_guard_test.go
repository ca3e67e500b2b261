package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/pgxstore"
)

// inTxModes are the modes whose handlers get a transaction.
var inTxModes = []semel.Mode{semel.Joined, semel.Atomic}

// pgxCall is a call in a mode whose effects are all in the transaction.
func pgxCall(key string, mode semel.Mode) semel.Call {
	c := joined(key)
	c.Mode, c.AllInTx = mode, mode == semel.Joined
	return c
}

// runPgx runs work once, under Resume.
func runPgx(t testing.TB, s *pgxStore, mode semel.Mode, work func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion) (semel.Result, error) {
	t.Helper()
	return newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("k", mode), func(ctx context.Context) semel.Completion {
		tx, err := pgxstore.Tx(ctx)
		assert.NoError(t, err)
		return work(ctx, tx)
	})
}

func pgxPayOnce(ctx context.Context) semel.Completion {
	if err := pgxPayOne(ctx); err != nil {
		return semel.Completion{}
	}
	return created
}

// stateOf is the record's of key k.
func (s *pgxStore) stateOf(t testing.TB) semel.State {
	t.Helper()
	rec, err := s.Get(t.Context(), joined("k").Scope, "k")
	assert.NoError(t, err)
	return rec.State
}

// freed is the state of a key whose work is known to be undone.
func freed(mode semel.Mode) semel.State {
	if mode == semel.Atomic {
		return semel.StateAbsent
	}
	return semel.StateReleased
}

// mustExec executes a statement of the work.
func mustExec(ctx context.Context, t testing.TB, tx *pgxstore.JoinedTx, sql string, args ...any) {
	t.Helper()
	_, err := tx.Exec(ctx, sql, args...)
	assert.NoError(t, err, sql)
}

// eachTxMode runs a test in each mode that has a transaction.
func eachTxMode(t *testing.T, test func(t *testing.T, mode semel.Mode)) {
	t.Helper()
	for _, mode := range inTxModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

// raise is a statement that fails as PostgreSQL would with that SQLSTATE.
func raise(state string) string {
	return "DO $$ BEGIN RAISE EXCEPTION 'raised by a test' USING ERRCODE = '" + state + "'; END $$"
}

func TestPgxCommitOfAnAbortedTransactionIsNoSuccess(t *testing.T) {
	t.Parallel()
	eachTxMode(t, func(t *testing.T, mode semel.Mode) {
		t.Helper()
		for name, err := range map[string]string{"a constraint": "23505", "a division": "22012"} {
			s := newPgx(t, pgxConfig{})
			res, got := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				mustExec(ctx, t, tx, pgxPay, "paid")
				_, failed := tx.Exec(ctx, raise(err))
				assert.True(t, failed != nil, "the statement fails")
				return created // all the same
			})
			assert.ErrorIs(t, got, semel.ErrCommitRefused, name)
			assert.Equal(t, res.Outcome, semel.OutcomeReleased, name)
			assert.Equal(t, s.payments(t), 0)
			assert.Equal(t, s.stateOf(t), freed(mode))
			res, got = runPgx(t, s, mode, func(ctx context.Context, _ *pgxstore.JoinedTx) semel.Completion { return pgxPayOnce(ctx) })
			assert.NoError(t, got)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted, "the next attempt")
		}
	})
}

func TestPgxCommitThatADeferredConstraintRefuses(t *testing.T) {
	t.Parallel()
	eachTxMode(t, func(t *testing.T, mode semel.Mode) {
		t.Helper()
		s := newPgx(t, pgxConfig{})
		s.exec(t, `CREATE TABLE refunds (payment bigint REFERENCES payments (id) DEFERRABLE INITIALLY DEFERRED)`)
		res, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			mustExec(ctx, t, tx, pgxPay, "paid")
			mustExec(ctx, t, tx, `INSERT INTO refunds VALUES (12345)`)
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.Contains(t, err.Error(), "refunds")
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0)
		assert.Equal(t, s.stateOf(t), freed(mode))
	})
}

func TestPgxRefusalUndoesTheRowsAndIsKept(t *testing.T) {
	t.Parallel()
	declined := semel.Completion{Verdict: semel.VerdictKeep, Undo: true, Reply: semel.Reply{Status: 409, Body: []byte("taken")}}
	for _, cfg := range []pgxConfig{{}, {query: "&default_query_exec_mode=simple_protocol"}} {
		eachTxMode(t, func(t *testing.T, mode semel.Mode) {
			t.Helper()
			s := newPgx(t, cfg)
			for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
				res, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
					mustExec(ctx, t, tx, pgxPay, "paid")
					_, err := tx.Exec(ctx, raise("23505")) // which aborts the transaction (R13)
					assert.True(t, err != nil, "the statement fails")
					return declined
				})
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, want)
				assert.Equal(t, res.Reply.Status, 409)
			}
			assert.Equal(t, s.payments(t), 0)
		})
	}
}

func TestPgxTransactionThatCannotGoOn(t *testing.T) {
	t.Parallel()
	pay := func(ctx context.Context, tx *pgxstore.JoinedTx) error {
		_, err := tx.Exec(ctx, pgxPay, "paid")
		return err
	}
	for state, goesOn := range map[string]bool{"40001": false, "40P01": false, "23505": true} {
		t.Run("after "+state+" that was undone to a savepoint", func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				assert.NoError(t, pay(ctx, tx))
				err := pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
					_, err := part.Exec(ctx, raise(state))
					return err
				})
				assert.Contains(t, err.Error(), state)
				assert.Equal(t, pay(ctx, tx) == nil, goesOn, "it goes on")
				return created
			})
			assert.Equal(t, err == nil, goesOn)
			if !goesOn {
				assert.ErrorIs(t, err, semel.ErrCommitRefused)
				assert.Equal(t, res.Outcome, semel.OutcomeReleased)
				assert.Equal(t, s.payments(t), 0)
				return
			}
			assert.Equal(t, s.payments(t), 2)
		})
	}
	t.Run("after a statement behind a failed one (25P02)", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		_, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			mustExec(ctx, t, tx, "SAVEPOINT mine")
			_, err := tx.Exec(ctx, raise("23505"))
			assert.True(t, err != nil, "the statement fails")
			assert.Contains(t, pay(ctx, tx).Error(), "25P02")
			_, err = tx.Exec(ctx, "ROLLBACK TO mine")
			assert.ErrorIs(t, err, semel.ErrCommitRefused)
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
	})
	t.Run("after its connection was lost", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			assert.NoError(t, pay(ctx, tx))
			var pid int
			assert.NoError(t, tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid))
			s.exec(t, "SELECT pg_terminate_backend($1)", pid)
			for range 2 {
				assert.True(t, pay(ctx, tx) != nil, "a statement fails")
			}
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0)
	})
}

// rewriter makes another text of a query, which nothing can see before it is
// sent.
type rewriter string

func (r rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return string(r), nil, nil
}

func TestPgxTransactionThatEndedBehindItsBack(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"COMMIT", "COMMIT; BEGIN", "ROLLBACK; BEGIN"} {
		t.Run("by "+sql+" is taken neither for committed nor for undone (R37)", func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				mustExec(ctx, t, tx, pgxPay, "paid")
				mustExec(ctx, t, tx, "SELECT 'harmless'", rewriter(sql))
				_, err := tx.Exec(ctx, pgxPay, "after it")
				assert.Equal(t, err == nil, sql != "COMMIT", "another statement is sent")
				return created
			})
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			assert.Equal(t, s.stateOf(t), semel.StateRunning, "the claim is left")
			assert.Equal(t, s.number(t, "SELECT count(*) FROM payments WHERE key = 'after it'"), 0, "rows written after it")
		})
	}
	t.Run("and that is to be undone is unknown", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			mustExec(ctx, t, tx, "SELECT 'harmless'", rewriter("COMMIT"))
			return semel.Completion{Verdict: semel.VerdictNotApplied}
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		assert.Equal(t, s.stateOf(t), semel.StateUnknown)
	})
}

func TestPgxTransactionThatCouldNotBeOpenedIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("k", semel.Joined), func(ctx context.Context) semel.Completion {
		cut, cancel := context.WithCancel(ctx)
		cancel()
		_, err := pgxstore.Tx(cut)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		return created // as if nothing had happened
	})
	assert.ErrorIs(t, err, semel.ErrCommitRefused)
	assert.Equal(t, res.Outcome, semel.OutcomeReleased)
	assert.Equal(t, s.stateOf(t), semel.StateReleased)
}

func TestPgxTransactionThatCouldBeOpenedAtLastIsOne(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	_, err := newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("k", semel.Joined), func(ctx context.Context) semel.Completion {
		cut, cancel := context.WithCancel(ctx)
		cancel()
		_, err := pgxstore.Tx(cut)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		return pgxPayOnce(ctx)
	})
	assert.NoError(t, err)
	assert.Equal(t, s.payments(t), 1)
}

func TestPgxTransactionBelongsToItsHandler(t *testing.T) {
	t.Parallel()
	t.Run("statements that would end it are refused, and it goes on", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		_, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			for _, sql := range []string{"COMMIT", "/* x */ rollback", "SELECT 1; COMMIT", "PREPARE TRANSACTION 'x'"} {
				_, err := tx.Exec(ctx, sql)
				assert.ErrorIs(t, err, semel.ErrTxMisuse, "Exec of", sql)
				_, err = tx.Query(ctx, sql) //nolint:sqlclosecheck // there are none.
				assert.ErrorIs(t, err, semel.ErrTxMisuse, "Query of", sql)
				assert.ErrorIs(t, tx.QueryRow(ctx, sql).Scan(), semel.ErrTxMisuse, "QueryRow of", sql)
				b := &pgx.Batch{}
				b.Queue(sql)
				assert.ErrorIs(t, tx.SendBatch(ctx, b).Close(), semel.ErrTxMisuse, "SendBatch of", sql)
			}
			b := &pgx.Batch{}
			b.BeginTx(pgx.TxOptions{})
			assert.ErrorIs(t, tx.SendBatch(ctx, b).Close(), semel.ErrTxMisuse, "a batch with a transaction of its own")
			mustExec(ctx, t, tx, pgxPay, "paid")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("all its ways to write and read work", func(t *testing.T) {
		t.Parallel()
		eachTxMode(t, func(t *testing.T, mode semel.Mode) {
			t.Helper()
			s := newPgx(t, pgxConfig{})
			_, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				mustExec(ctx, t, tx, pgxPay, "a")
				b := &pgx.Batch{}
				b.Queue(pgxPay, "b")
				assert.NoError(t, tx.SendBatch(ctx, b).Close())
				n, err := tx.CopyFrom(ctx, pgx.Identifier{"payments"}, []string{"key"}, pgx.CopyFromRows([][]any{{"c"}, {"d"}}))
				assert.NoError(t, err)
				assert.Equal(t, n, 2, "rows copied")
				assert.NoError(t, pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
					_, err := part.Exec(ctx, pgxPay, "e")
					return err
				}))
				undo := errors.New("undo this part")
				assert.ErrorIs(t, pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
					_, err := part.Exec(ctx, pgxPay, "f")
					return errors.Join(err, undo)
				}), undo)
				rows, err := tx.Query(ctx, "SELECT key FROM payments ORDER BY key")
				assert.NoError(t, err)
				keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
				assert.NoError(t, err)
				assert.Equal(t, keys, []string{"a", "b", "c", "d", "e"})
				assert.Equal(t, s.payments(t), 0, "rows that others see")
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, s.payments(t), 5)
		})
	})
	t.Run("rows that are left open refuse the commit, and spoil no connection", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{Config: pgxstore.Config{MaxTxConns: 1}})
		for range 3 {
			res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				mustExec(ctx, t, tx, pgxPay, "paid")
				rows, err := tx.Query(ctx, "SELECT generate_series(1, 100000)") //nolint:sqlclosecheck // it is what is tested.
				assert.NoError(t, err)
				assert.True(t, rows.Next(), "there is a row")
				_, err = tx.Exec(ctx, pgxPay, "beside it")
				assert.ErrorIs(t, err, semel.ErrTxMisuse)
				return created
			})
			assert.ErrorIs(t, err, semel.ErrCommitRefused)
			assert.ErrorIs(t, err, semel.ErrTxMisuse)
			assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		}
		assert.Equal(t, s.payments(t), 0)
	})
	t.Run("after the handler has returned it is closed", func(t *testing.T) {
		t.Parallel()
		eachTxMode(t, func(t *testing.T, mode semel.Mode) {
			t.Helper()
			s := newPgx(t, pgxConfig{})
			var (
				after context.Context
				left  *pgxstore.JoinedTx
			)
			_, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				after, left = context.WithoutCancel(ctx), tx //nolint:fatcontext // it is used after its time.
				return created
			})
			assert.NoError(t, err)
			_, err = left.Exec(after, pgxPay, "late")
			assert.ErrorIs(t, err, semel.ErrTxMisuse)
			_, err = pgxstore.Tx(after)
			assert.ErrorIs(t, err, semel.ErrTxMisuse)
			assert.Equal(t, s.payments(t), 0)
		})
	})
	t.Run("elsewhere there is none", func(t *testing.T) {
		t.Parallel()
		_, err := pgxstore.Tx(t.Context())
		assert.ErrorIs(t, err, semel.ErrTxMisuse)
		assert.Contains(t, err.Error(), "semelhttp.Route.Mode")
		s := newPgx(t, pgxConfig{})
		_, err = runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			inner := pgxCall("inner", semel.Leased)
			_, err := newGuard(t, s, semel.Config{}).Run(ctx, inner, func(ctx context.Context) semel.Completion {
				_, err := pgxstore.Tx(ctx)
				assert.ErrorIs(t, err, semel.ErrTxMisuse)
				return created
			})
			assert.NoError(t, err)
			mustExec(ctx, t, tx, pgxPay, "paid")
			return created
		})
		assert.NoError(t, err)
	})
}

func TestPgxTransactionEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	eachTxMode(t, func(t *testing.T, mode semel.Mode) {
		t.Helper()
		s := newPgx(t, pgxConfig{})
		g := newGuard(t, s, semel.Config{HandlerDeadline: 10 * time.Second})
		back := make(chan struct{})
		over := make(chan error, 1)
		_, err := g.Run(t.Context(), pgxCall("k", mode), func(ctx context.Context) semel.Completion {
			tx, err := pgxstore.Tx(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, pgxPay, "paid")
			}
			if err != nil {
				t.Errorf("got error %v before the deadline, want none", err)
				over <- err
				return semel.Completion{}
			}
			_, err = tx.Exec(context.Background(), "SELECT pg_sleep(60)") // it does not listen
			<-back
			over <- err
			return created
		})
		assert.ErrorIs(t, err, semel.ErrStillRunning)
		assert.Eventually(t, "the server has rolled back", func() bool {
			return s.number(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND (state LIKE 'idle in transaction%' OR query LIKE 'SELECT pg_sleep%')") == 0
		})
		if mode == semel.Atomic {
			res, err := g.Run(t.Context(), pgxCall("k", mode), pgxPayOnce)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted, "a repeat, though the first handler has not returned")
		}
		close(back)
		assert.True(t, <-over != nil, "the statement was cut off")
		assert.Eventually(t, "what is left is known", func() bool {
			return s.stateOf(t) == semel.StateDone || s.stateOf(t) == semel.StateReleased
		})
		want := 0
		if mode == semel.Atomic {
			want = 1
		}
		assert.Equal(t, s.payments(t), want)
	})
}
