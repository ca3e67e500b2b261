package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestSQLiteWriterThatIsNotFreeIsAStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		hold func(t *testing.T, s *sqliteStore) (free func())
	}{
		{"while this process has it", func(t *testing.T, s *sqliteStore) func() {
			tx, err := s.handles.Write.BeginTx(t.Context(), nil)
			assert.NoError(t, err)
			return func() { assert.NoError(t, tx.Rollback()) }
		}},
		{"while another process has it", func(t *testing.T, s *sqliteStore) func() { return stall(t, s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSQLite(t)
			held, err := s.Begin(t.Context(), beginFor("held"))
			assert.NoError(t, err)
			claim := held.Record.Claim()
			free := c.hold(t, s)
			short := func() context.Context {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				t.Cleanup(cancel)
				return ctx
			}
			for name, call := range map[string]func() error{
				"Begin":  func() error { _, err := s.Begin(short(), beginFor("k")); return err },
				"Extend": func() error { _, err := s.Extend(short(), claim, semel.ExtendParams{Lease: time.Minute}); return err },
				"Finish": func() error { _, err := s.Finish(short(), claim, doneWith("x")); return err },
				"Sweep":  func() error { _, err := s.Sweep(short(), 1); return err },
			} {
				// A machine that is busy may be late once, but not each time.
				assert.Eventually(t, name+" gives up at its deadline", func() bool {
					start := time.Now()
					err := call()
					assert.ErrorIs(t, err, semel.ErrStoreUnavailable, name)
					assert.ErrorIs(t, err, context.DeadlineExceeded, name)
					return time.Since(start) < time.Second
				})
			}
			free()
			res, err := s.Begin(t.Context(), beginFor("k"))
			assert.NoError(t, err)
			assert.Equal(t, res.Record.Attempt, int64(1), "attempts: nothing of the calls that gave up was executed later")
		})
	}
}

func TestSQLiteAttemptsInsideAnOpenTransactionFailAndItGoesOn(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	inner := func(ctx context.Context, key string) error {
		_, err := newGuard(t, s, semel.Config{}).Run(ctx, joined(key), payOnce)
		return err
	}
	res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
		assert.NoError(t, inner(ctx, "inner"), "an attempt inside one that has not opened its transaction")
		done := payOnce(ctx)
		assert.ErrorIs(t, inner(ctx, "too late"), semel.ErrStoreUnavailable)
		return done
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	assert.Equal(t, s.payments(t), 2, "payments: the first inner one's, and the outer one's")
}

func TestSQLiteTransactionThatOutlastsItsLeaseStillCounts(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	lapsed := false
	// On a slow machine the transaction does not begin within the shortest: the
	// handler is stopped then.
	for lease := semel.MinLease; !lapsed && lease < time.Minute; lease *= 2 {
		key := lease.String()
		res, err := newGuard(t, s, semel.Config{Lease: lease}).Run(t.Context(), joined(key), func(ctx context.Context) semel.Completion {
			if err := pay(ctx); err != nil {
				return semel.Completion{Verdict: semel.VerdictNotApplied}
			}
			assert.Eventually(t, "the lease has lapsed, since its heartbeats wait for the transaction", func() bool {
				rec, err := s.Get(t.Context(), joined(key).Scope, key)
				return err == nil && rec.LeaseLeft() < 0
			})
			lapsed = ctx.Err() == nil
			return created
		})
		if lapsed {
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		}
	}
	assert.True(t, lapsed, "a transaction that was open is not cut short when the lease has lapsed")
	assert.Equal(t, s.payments(t), 1)
}

func TestSQLiteGivesUpBeforeItsCaller(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	free := stall(t, s)
	defer free()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	_, err := s.Begin(ctx, beginFor("k"))
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	assert.Contains(t, err.Error(), "SQLITE_BUSY")
	waited := time.Since(start)
	assert.True(t, waited > 3*time.Second, "it waited %v for the writer", waited)
	assert.True(t, ctx.Err() == nil, "it gave up before its context")
}

func TestSQLiteWriterSurvivesWhatGoesWrong(t *testing.T) {
	t.Parallel()
	errLost := errors.New("the answer was lost")
	only := func(which string, err error) func(string) error {
		return func(query string) error {
			if query == which {
				return err
			}
			return nil
		}
	}
	for _, c := range []struct {
		name          string
		before, after func(string) error
		running       bool
	}{
		{"a BEGIN that took effect without an answer", nil, only("BEGIN IMMEDIATE", errLost), false},
		{"a COMMIT that did not happen", only("COMMIT", errLost), nil, false},
		{"a COMMIT that took effect without an answer", nil, only("COMMIT", errLost), true},
		{"neither COMMIT nor ROLLBACK", func(query string) error {
			if query == "COMMIT" || query == "ROLLBACK" {
				return errLost
			}
			return nil
		}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tap, name := newTap(t)
			s := newSQLiteOn(t, name)
			p := beginFor("k")
			tap.fail(c.before, c.after)
			_, err := s.Begin(t.Context(), p)
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.ErrorIs(t, err, errLost)
			assert.True(t, !errors.Is(err, semel.ErrCommitRefused), "no business transaction was refused: %v", err)
			tap.fail(nil, nil)
			rec, err := s.Get(t.Context(), p.Scope, p.Key)
			assert.NoError(t, err)
			assert.Equal(t, rec.State == semel.StateRunning, c.running, "claimed")
			res, err := s.Begin(t.Context(), p)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginClaimed, "the same token again")
			assert.Equal(t, res.Record.Attempt, int64(1), "attempt")
			assert.Equal(t, res.From, semel.StateAbsent, "it is no takeover")
		})
	}
	t.Run("a transaction of the program's own that SQLite rolled back", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		for _, goOn := range []bool{false, true} {
			tx, err := s.handles.Write.BeginTx(t.Context(), nil)
			assert.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "INSERT INTO payments (id, key) VALUES (1, 'once')")
			assert.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), conflict)
			assert.True(t, err != nil, "the conflict is reported")
			if goOn {
				_, err = tx.ExecContext(t.Context(), insertPayment, "after")
				assert.Contains(t, err.Error(), "the transaction is gone")
			}
			assert.True(t, tx.Commit() != nil, "COMMIT of a transaction that is gone fails")
			assert.Equal(t, s.payments(t), 0)
		}
	})
	t.Run("a call that is cancelled at any moment", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Microsecond)
			s.Begin(ctx, beginFor("cancelled")) //nolint:errcheck // what counts is what it leaves behind.
			cancel()
		}
		_, err := s.Begin(t.Context(), beginFor("k"))
		assert.NoError(t, err)
	})
}

func TestSQLiteAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	first, err := s.Begin(t.Context(), beginFor("k"))
	assert.NoError(t, err)
	assert.NoError(t, s.clock.Advance(time.Hour))
	g := newGuard(t, s, semel.Config{})
	_, err = g.Settle(t.Context(), semel.SettleParams{
		Expect: first.Record, As: semel.SettleNotApplied, Actor: "ops@example.com", Reason: "the bank has no charge",
	})
	assert.NoError(t, err)
	log, err := s.Audits(t.Context(), first.Record.Scope, "k")
	assert.NoError(t, err)
	assert.Equal(t, len(log), 2, "lines: the takeover and the settlement")
	assert.Equal(t, log[0].To, semel.StateRunning)
	assert.Equal(t, log[1].To, semel.StateReleased)
	assert.Equal(t, log[1].Audit.Reason, "the bank has no charge")
	for _, query := range []string{"UPDATE semel_audit SET actor = 'me'", "DELETE FROM semel_audit"} {
		_, err := s.handles.Write.Exec(query)
		assert.True(t, err != nil, "%s fails", query)
		assert.Contains(t, err.Error(), "append-only")
	}
}
