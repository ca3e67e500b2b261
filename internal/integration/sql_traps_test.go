package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// SQL that looks right and is not (R23), and what waits for a lock.

// onServers runs a test on each server, reached in the usual way.
func onServers(t *testing.T, test func(t *testing.T, s *sqlStore)) {
	t.Helper()
	for _, way := range []string{"PostgreSQL", "MariaDB"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, newSQL(t, way))
		})
	}
}

// whileHeld makes a call, lets go of a lock it waits for, and returns what the
// call returned. wait is let pass before that, for clocks that stand still in a
// statement or a transaction: no test can move those.
func whileHeld[T any](t *testing.T, s *sqlStore, wait time.Duration, release func(), call func() (T, error)) T {
	t.Helper()
	var (
		res  T
		err  error
		done sync.WaitGroup
	)
	done.Go(func() { res, err = call() })
	assert.Eventually(t, "the call waits for the lock", func() bool { return s.waiting(t) > 0 })
	time.Sleep(wait)
	release()
	done.Wait()
	assert.NoError(t, err)
	return res
}

// standstill is how long a call is kept waiting in vain for a clock.
const standstill = 1200 * time.Millisecond

// waiting counts the statements that wait for a lock in the store's database.
func (s *sqlStore) waiting(t testing.TB) int64 {
	t.Helper()
	return s.number(t, s.server.waiting)
}

// begun claims a key.
func begun(t *testing.T, s semel.Store, p semel.BeginParams) *semel.Record {
	t.Helper()
	res, err := s.Begin(t.Context(), p)
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.BeginClaimed)
	return &res.Record
}

// rival inserts the record of a key as that of another, in a transaction that
// is open until one of its two functions is called.
func (s *sqlStore) rival(t *testing.T, key string) (commit, rollback func()) {
	t.Helper()
	claim := begun(t, s, beginFor("rival"))
	tx, err := s.test.BeginTx(context.Background(), nil)
	assert.NoError(t, err)
	_, err = tx.Exec(strings.NewReplacer("{key}", fmt.Sprintf(s.server.bytes, []byte(key)), "{rival}", fmt.Sprintf(s.server.bytes, []byte(claim.Key))).Replace(
		`INSERT INTO semel_records (scope, idempotency_key, version, state, is_open, generation, operation_id, token, attempt, raw_digest, meaning_digest, policy,
		credential, trace, all_in_tx, reply_started, reply_kept, created, first_started, claimed, renewed, lease_end, status, header, body)
		SELECT scope, {key}, version, state, is_open, generation, operation_id, token, attempt, raw_digest, meaning_digest, policy,
		credential, trace, all_in_tx, reply_started, reply_kept, created, first_started, claimed, renewed, lease_end, status, header, body
		FROM semel_records WHERE idempotency_key = {rival}`))
	assert.NoError(t, err)
	return func() { assert.NoError(t, tx.Commit()) }, func() { assert.NoError(t, tx.Rollback()) }
}

func TestServersClaimThatMeetsARival(t *testing.T) {
	t.Parallel()
	asTheRival := beginFor("k")
	asTheRival.Fingerprint = beginFor("rival").Fingerprint
	t.Run("who commits between its snapshot and its look finds the key busy", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			commit, _ := s.rival(t, "k")
			res := whileHeld(t, s, 0, commit, func() (semel.BeginResult, error) { return s.Begin(t.Context(), asTheRival) })
			assert.Equal(t, res.Outcome, semel.BeginBusy)
		})
	})
	t.Run("who gives up has its whole lease", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			_, rollback := s.rival(t, "k")
			res := whileHeld(t, s, standstill, rollback, func() (semel.BeginResult, error) { return s.Begin(t.Context(), asTheRival) })
			assert.Equal(t, res.Outcome, semel.BeginClaimed)
			assert.Equal(t, res.From, semel.StateAbsent)
			left := res.Record.LeaseLeft()
			assert.True(t, left > asTheRival.Lease-standstill/2, "its lease is whole: %v of %v", left, asTheRival.Lease)
		})
	})
}

func TestServersAnswersThatChangeNothingTakeNoLock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		begun(t, s, beginFor("running"))
		_, err := s.Finish(t.Context(), begun(t, s, beginFor("done")).Claim(), doneWith("x"))
		assert.NoError(t, err)
		for _, key := range []string{"running", "done"} {
			defer s.hold(t, joined(key).Scope, key)()
		}
		other := beginFor("running")
		other.Fingerprint = semel.FingerprintOf([]byte("another request"))
		writes := s.number(t, s.server.writes)
		ctx := t.Context() // whatever waits for a lock is given up by the store
		for _, c := range []struct {
			name   string
			params semel.BeginParams
			want   semel.BeginOutcome
		}{
			{"replay", beginFor("done"), semel.BeginReplay},
			{"busy", beginFor("running"), semel.BeginBusy},
			{"mismatch", other, semel.BeginMismatch},
		} {
			res, err := s.Begin(ctx, c.params)
			assert.NoError(t, err, c.name)
			assert.Equal(t, res.Outcome, c.want, c.name)
		}
		_, err = s.Get(ctx, joined("done").Scope, "done")
		assert.NoError(t, err)
		n, err := s.Sweep(ctx, 100)
		assert.NoError(t, err)
		assert.Equal(t, n, 0, "swept")
		assert.Equal(t, s.number(t, s.server.writes), writes, "rows written")
	})
}

func TestPostgresReplayLeavesTheRowUntouched(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "PostgreSQL")
	_, err := s.Finish(t.Context(), begun(t, s, beginFor("k")).Claim(), doneWith("x"))
	assert.NoError(t, err)
	// A lock sets xmax as well.
	const mark = "SELECT xmax::text::bigint FROM semel_records"
	before := s.number(t, mark)
	for range 3 {
		res, err := s.Begin(t.Context(), beginFor("k"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.BeginReplay)
	}
	assert.Equal(t, s.number(t, mark), before, "xmax of the row")
}

func TestServersTakeTheTimeOnceTheyHaveTheRow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		call func(ctx context.Context, s *sqlStore, c semel.Claim) (semel.Held, error)
		at   func(r *semel.Record) time.Time // when it took effect
	}{
		{"Extend", func(ctx context.Context, s *sqlStore, c semel.Claim) (semel.Held, error) {
			return s.Extend(ctx, c, semel.ExtendParams{Lease: time.Minute})
		}, func(r *semel.Record) time.Time { return r.Renewed }},
		{"Finish", func(ctx context.Context, s *sqlStore, c semel.Claim) (semel.Held, error) {
			return s.Finish(ctx, c, doneWith("x"))
		}, func(r *semel.Record) time.Time { return r.Finished }},
		{"Begin sent again", func(ctx context.Context, s *sqlStore, c semel.Claim) (semel.Held, error) {
			p := beginFor("k")
			p.Token = c.Token
			res, err := s.Begin(ctx, p)
			return semel.Held{Status: semel.HeldYes, State: res.Record.State}, err
		}, func(r *semel.Record) time.Time { return r.Renewed }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *sqlStore) {
				rec := begun(t, s, beginFor("k"))
				release := s.hold(t, rec.Scope, rec.Key)
				held := whileHeld(t, s, standstill, release, func() (semel.Held, error) { return c.call(t.Context(), s, rec.Claim()) })
				assert.Equal(t, held.Status, semel.HeldYes)
				got, err := s.Get(t.Context(), rec.Scope, rec.Key)
				assert.NoError(t, err)
				waited := c.at(&got).Sub(rec.Claimed)
				assert.True(t, waited >= standstill, "the time is that of the write: %v after the claim, want %v or more", waited, standstill)
			})
		})
	}
	t.Run("a joined commit, in a transaction that began long before", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			rec := begun(t, s, beginFor("k"))
			joint := s.Join(rec.Claim())
			defer joint.Rollback() //nolint:errcheck // after Commit it has nothing to do.
			assert.NoError(t, s.server.pay(joint.Context(t.Context())))
			time.Sleep(standstill)
			held, err := joint.Commit(t.Context(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes)
			got, err := s.Get(t.Context(), rec.Scope, rec.Key)
			assert.NoError(t, err)
			assert.True(t, got.Finished.Sub(rec.Claimed) >= standstill, "the time is that of the commit, not of the transaction's start")
		})
	})
}

// frozen returns the store again, with a clock that stands still.
func (s *sqlStore) frozen(t *testing.T) *sqlStore {
	t.Helper()
	w, name := newWire(t, s.server.driver)
	w.rewrite = func(statement string) string {
		return strings.ReplaceAll(statement, " + shift()", " * 0 + 1800000000000000")
	}
	return s.by(t, name)
}

// MariaDB counts rows as affected only where a value differs.
func TestServersCallTwiceInOneTickOfTheClock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		f := s.frozen(t)
		p := beginFor("k")
		rec := begun(t, f, p)
		for range 3 {
			res, err := f.Begin(t.Context(), p)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginClaimed, "Begin, sent again")
			assert.Equal(t, res.Record.Renewed, rec.Renewed, "the clock stands still")
			held, err := f.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: p.Lease})
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes, "Extend")
		}
		for range 2 {
			held, err := f.Finish(t.Context(), rec.Claim(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes, "Finish")
		}
	})
}

// Of a deadlock or a serialization failure of the store's own statement, which
// has had no effect, the caller hears nothing.
func TestServersOwnStatementsAreSentAgainWhereNothingTookEffect(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		for i, code := range append(s.server.undone, "") {
			if i > 0 {
				s = newSQL(t, s.way)
			}
			if code == "" {
				code = s.server.otherwise
			}
			for _, statement := range s.server.failing {
				if strings.Contains(statement, "%") {
					statement = fmt.Sprintf(statement, code)
				}
				s.exec(t, statement)
			}
			p := beginFor("k")
			rec := begun(t, s, p)
			_, again := s.Begin(t.Context(), p) // in a transaction
			_, renewed := s.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: time.Minute})
			if code == s.server.otherwise {
				assert.ErrorIs(t, errors.Join(again, renewed), semel.ErrStoreUnavailable, "any other error, %s", code)
				continue
			}
			assert.NoError(t, again, "Begin, sent again, after %s", code)
			assert.NoError(t, renewed, "Extend after %s", code)
		}
	})
}

func TestServersGiveAStatementUpBeforeItsCallerDoes(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		assert.Equal(t, s.StatementLimit() < semel.DefaultStoreTimeout, true, "the limit is shorter than the default timeout")
		rec := begun(t, s, beginFor("k"))
		release := s.hold(t, rec.Scope, rec.Key)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Finish(ctx, rec.Claim(), doneWith("x"))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.NoError(t, ctx.Err())
		assert.Eventually(t, "no statement waits any more", func() bool { return s.waiting(t) == 0 })
		release()
		got, err := s.Get(t.Context(), rec.Scope, rec.Key)
		assert.NoError(t, err)
		assert.Equal(t, got.State, semel.StateRunning, "nothing of it is executed late (R15)")
	})
}

func TestServersSweepWaitsForNobody(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		for _, key := range []string{"a", "b", "c"} {
			_, err := s.Finish(t.Context(), begun(t, s, beginFor(key)).Claim(), doneWith("x"))
			assert.NoError(t, err)
		}
		s.advance(t, 2*time.Hour)
		release := s.hold(t, joined("b").Scope, "b")
		n, err := s.Sweep(t.Context(), 100)
		assert.NoError(t, err)
		assert.Equal(t, n, 2, "swept while one is locked")
		release()
		n, err = s.Sweep(t.Context(), 100)
		assert.NoError(t, err)
		assert.Equal(t, n, 1, "swept then")
	})
}

// MariaDB's own level, REPEATABLE READ, locks the gap in which a key is to be.
func TestMariaDBOwnStatementsAreReadCommitted(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "MariaDB")
	rec := begun(t, s, beginFor("k"))
	release := s.hold(t, rec.Scope, rec.Key)
	var level string
	whileHeld(t, s, 0, func() {
		assert.Eventually(t, "the server lists what waits for the lock", func() bool {
			time.Sleep(150 * time.Millisecond) // the list is renewed for nobody who asks sooner
			err := s.test.QueryRow("SELECT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%semel_records%'").Scan(&level)
			return !errors.Is(err, sql.ErrNoRows)
		})
		release()
	}, func() (semel.Held, error) {
		return s.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: time.Minute})
	})
	assert.Equal(t, level, "READ COMMITTED")
}

func TestPgBouncerClientsGetNoSettingsOfTheStore(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "PostgreSQL behind PgBouncer")
	_, err := s.Finish(t.Context(), begun(t, s, beginFor("k")).Claim(), doneWith("x"))
	assert.NoError(t, err)
	for range 20 {
		for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			var value string
			assert.NoError(t, s.handles.Write.QueryRow("SELECT current_setting('"+name+"')").Scan(&value))
			assert.Equal(t, value, "0", "%s of another client of the pooler", name)
		}
	}
}

func TestServersCallsOutliveIdleConnectionsThatWereLost(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		s.occupyAll(t)() // which opens them
		s.test.SetMaxOpenConns(1)
		lose := func() {
			s.exec(t, s.server.killAll)
			assert.Eventually(t, "the connections are gone", func() bool { return s.number(t, s.server.others) == 0 })
		}
		for range 2 {
			lose()
			rec := begun(t, s, beginFor(fmt.Sprint("after ", time.Now())))
			lose()
			held, err := s.Finish(t.Context(), rec.Claim(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes)
		}
	})
}

// occupyAll keeps all of the store's own connections waiting until release is
// called.
func (s *sqlStore) occupyAll(t *testing.T) (release func()) {
	t.Helper()
	const all = 8
	var calls sync.WaitGroup
	rec := begun(t, s, beginFor("occupied"))
	free := s.hold(t, rec.Scope, rec.Key)
	var released atomic.Bool
	for range all {
		calls.Go(func() {
			for !released.Load() { // it is given up when it has waited for too long
				s.Extend(context.Background(), rec.Claim(), semel.ExtendParams{Lease: time.Minute}) //nolint:errcheck // see above.
			}
		})
	}
	assert.Eventually(t, "all wait", func() bool { return s.waiting(t) == all })
	return func() {
		released.Store(true)
		free()
		calls.Wait()
	}
}

// What is sent late could be at work when its caller has given up (R15).
func TestServersCallThatFindsNoConnectionInTimeIsNotSent(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		release := s.occupyAll(t)
		// A call may wait for a connection until the rest of its time is what a
		// statement may take.
		ctx, cancel := context.WithTimeout(t.Context(), s.StatementLimit()+100*time.Millisecond)
		defer cancel()
		_, err := s.Begin(ctx, beginFor("k"))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.NoError(t, ctx.Err())
		release()
	})
}
