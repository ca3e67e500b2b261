package integration

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
)

// SQL that looks right and is not (R23), by pgx: see sql_traps_test.go.

// pgxWaiting counts the statements of others that wait for a lock.
const pgxWaiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

// other begins a transaction of a test's own on another connection.
func (s *pgxStore) other(t *testing.T) pgx.Tx {
	t.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), s.admin.Config())
	assert.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) }) //nolint:errcheck // the test is over.
	tx, err := conn.Begin(context.Background())
	assert.NoError(t, err)
	return tx
}

func TestPgxClaimThatMeetsARivalFindsTheKeyBusy(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	asTheRival := beginFor("k")
	asTheRival.Fingerprint = beginFor("rival").Fingerprint
	begun(t, s, beginFor("rival"))
	rival := s.other(t)
	_, err := rival.Exec(t.Context(), "UPDATE semel_records SET idempotency_key = 'k'")
	assert.NoError(t, err)
	// The claim's snapshot has no such key, and its INSERT waits for the rival's.
	var (
		res  semel.BeginResult
		done sync.WaitGroup
	)
	done.Go(func() {
		for {
			var refused *pgconn.PgError
			res, err = s.Begin(t.Context(), asTheRival)
			if !errors.As(err, &refused) || refused.Code != "55P03" { // it has waited for too long
				return
			}
		}
	})
	assert.Eventually(t, "the claim waits for the rival", func() bool { return s.number(t, pgxWaiting) > 0 })
	assert.NoError(t, rival.Commit(t.Context()))
	done.Wait()
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.BeginBusy)
}

func TestPgxReplayLeavesTheRowUntouched(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
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

// What is sent late could be at work when its caller has given up (R15).
func TestPgxCallWaitsForAConnectionNoLongerThanItsStatementCanBeWaitedFor(t *testing.T) {
	t.Parallel()
	base, err := pgxpool.ParseConfig(newPgx(t, pgxConfig{}).url)
	assert.NoError(t, err)
	until := make(chan time.Time, 1)
	base.PrepareConn = func(ctx context.Context, _ *pgx.Conn) (bool, error) {
		deadline, _ := ctx.Deadline()
		select {
		case until <- deadline:
		default:
		}
		return true, nil
	}
	s, err := pgxstore.New(t.Context(), base, pgxstore.Config{Hooks: pgxHooks})
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	rec := begun(t, s, beginFor("k"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	givenUp, _ := ctx.Deadline()
	for name, call := range map[string]func() error{
		"Begin":  func() error { _, err := s.Begin(ctx, beginFor("k")); return err },
		"Extend": func() error { _, err := s.Extend(ctx, rec.Claim(), semel.ExtendParams{Lease: time.Minute}); return err },
		"Get":    func() error { _, err := s.Get(ctx, rec.Scope, rec.Key); return err },
		"Finish": func() error { _, err := s.Finish(ctx, rec.Claim(), doneWith("x")); return err },
		"Sweep":  func() error { _, err := s.Sweep(ctx, 1); return err },
	} {
		select {
		case <-until: // of a call before
		default:
		}
		assert.NoError(t, call(), name)
		assert.Equal(t, givenUp.Sub(<-until), s.StatementLimit(), "what %s leaves to its statement", name)
	}
}

// pgxStandstill is how long a transaction is open before its end.
const pgxStandstill = 400 * time.Millisecond

func TestPgxTakesTheTimeOnceItHasTheRow(t *testing.T) {
	t.Parallel()
	for _, mode := range inTxModes {
		t.Run("the commit of a transaction that began long before, "+mode.String(), func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			var opened time.Time
			_, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				assert.NoError(t, tx.QueryRow(ctx, "SELECT now()").Scan(&opened))
				time.Sleep(pgxStandstill)
				return created
			})
			assert.NoError(t, err)
			rec, err := s.Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, err)
			assert.True(t, rec.Finished.Sub(opened) >= pgxStandstill, "the time is that of the commit: %v after its transaction began", rec.Finished.Sub(opened))
		})
	}
}

// Above READ COMMITTED records of other keys could make a statement of the
// store's fail.
func TestPostgresOwnStatementsAreReadCommitted(t *testing.T) {
	t.Parallel()
	const above = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$"
	levels := []string{
		"CREATE TABLE levels (level text)",
		"CREATE FUNCTION note_level() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.levels VALUES (current_setting(''transaction_isolation'')); RETURN NULL; END'",
		"CREATE TRIGGER note_level AFTER INSERT OR UPDATE ON semel_records FOR EACH ROW EXECUTE FUNCTION note_level()",
		above,
	}
	const found = "SELECT count(*) FROM levels WHERE level = 'read committed'"
	use := func(s semel.Store) {
		rec := begun(t, s, beginFor("k"))
		_, err := s.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: time.Minute})
		assert.NoError(t, err)
		unknown(t, s, rec)
		_, err = s.Finish(t.Context(), rec.Claim(), doneWith("x"))
		assert.NoError(t, err)
	}
	const writes = 4
	t.Run("database/sql", func(t *testing.T) {
		t.Parallel()
		s := newSQL(t, "PostgreSQL")
		for _, statement := range levels {
			s.exec(t, statement)
		}
		use(s.by(t, s.server.driver))
		assert.Equal(t, s.number(t, found), writes, "writes")
	})
	t.Run("pgx", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		for _, statement := range levels {
			s.exec(t, statement)
		}
		s = openPgx(t, services.SharedPostgres(t), s.url, pgxConfig{})
		use(s)
		assert.Equal(t, s.number(t, found), writes, "writes")
		// A claim in the business transaction reads what was committed before it had
		// its lock (R17).
		call := pgxCall("atomic", semel.Atomic)
		_, err := newGuard(t, s, semel.Config{}).Run(t.Context(), call, func(ctx context.Context) semel.Completion {
			tx, err := pgxstore.Tx(ctx)
			assert.NoError(t, err)
			var level string
			assert.NoError(t, tx.QueryRow(ctx, "SELECT current_setting('transaction_isolation')").Scan(&level))
			assert.Equal(t, level, "read committed", "an atomic claim")
			return created
		})
		assert.NoError(t, err)
	})
}
