package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/sqlstore"
)

func TestPgxOpen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Run("a database that was not migrated is refused, and says what to do", func(t *testing.T) {
		t.Parallel()
		_, err := pgxstore.Open(ctx, services.SharedPostgres(t).NewDatabase(t), pgxstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "pgxstore.Migrate")
	})
	t.Run("several processes may migrate at once, through a pooler too", func(t *testing.T) {
		t.Parallel()
		url := services.SharedPgBouncer(t).NewDatabase(t)
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			all.Go(func() { errs[i] = pgxstore.Migrate(ctx, url) })
		}
		all.Wait()
		assert.NoError(t, errors.Join(errs...))
		s, err := pgxstore.Open(ctx, url, pgxstore.Config{TransactionPooler: true})
		assert.NoError(t, err)
		s.Close()
	})
	t.Run("an URL that cannot be read is refused without its password", func(t *testing.T) {
		t.Parallel()
		for _, open := range []func() error{
			func() error {
				_, err := pgxstore.Open(ctx, "postgres://u:secret@host:port/", pgxstore.Config{})
				return err
			},
			func() error { return pgxstore.Migrate(ctx, "postgres://u:secret@host:port/") },
		} {
			err := open()
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.True(t, !strings.Contains(err.Error(), "secret"), "no password in", err)
		}
	})
	t.Run("a server that is not there is unavailable", func(t *testing.T) {
		t.Parallel()
		_, err := pgxstore.Open(ctx, "postgres://u@127.0.0.1:1/none", pgxstore.Config{})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	})
	t.Run("a pooler that nobody spoke of is found out", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{pgbouncer: true, Config: pgxstore.Config{TransactionPooler: true}})
		_, err := pgxstore.Open(ctx, s.url, pgxstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "Config.TransactionPooler")
	})
	t.Run("settings out of bounds are named", func(t *testing.T) {
		t.Parallel()
		for field, cfg := range map[string]pgxstore.Config{
			"MaxConns":   {MaxConns: -1},
			"MaxTxConns": {MaxTxConns: -1},
			"Class":      {Class: "for ever"},
		} {
			_, err := pgxstore.Open(ctx, "postgres://u@127.0.0.1:1/none", cfg)
			assert.ErrorIs(t, err, semel.ErrConfig, field)
			assert.Contains(t, err.Error(), field)
		}
		_, err := pgxstore.New(ctx, nil, pgxstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
	})
}

func TestPgxClassIsThatOfTheServer(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	assert.Equal(t, s.Class(), semel.Durable)
	for suffix, want := range map[string]semel.StoreClass{
		"":                        semel.DurableUnlessFailover,
		"&synchronous_commit=off": semel.BestEffort,
	} {
		o, err := pgxstore.Open(t.Context(), s.url+suffix, pgxstore.Config{Class: semel.DurableUnlessFailover})
		assert.NoError(t, err)
		assert.Equal(t, semel.ClassOf(o), want, suffix)
		o.Close()
	}
}

// TestPgxSettingsHold asks the connections what they were told, the way that
// each has them.
func TestPgxSettingsHold(t *testing.T) {
	t.Parallel()
	for way, cfg := range pgxWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, cfg)
			s.exec(t, `CREATE TABLE told (name text, value text)`)
			s.exec(t, `CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				INSERT INTO told SELECT name, setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_isolation');
				RETURN NULL; END $$`)
			s.exec(t, `CREATE TRIGGER tell AFTER INSERT ON semel_records FOR EACH ROW EXECUTE FUNCTION tell()`)
			_, err := s.Begin(t.Context(), beginFor("k"))
			assert.NoError(t, err)
			for name, want := range map[string]string{
				"statement_timeout": "3000", "lock_timeout": "1000", "idle_in_transaction_session_timeout": "10000", "transaction_isolation": "read committed",
			} {
				assert.Equal(t, s.number(t, `SELECT count(*) FROM told WHERE name = $1 AND value = $2`, name, want), 1, name, "is", want)
			}
			_, err = runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
				var idle, statement string
				assert.NoError(t, tx.QueryRow(ctx, `SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')`).Scan(&idle, &statement))
				assert.True(t, idle != "0", "the server ends a transaction that is left idle")
				assert.Equal(t, statement, "0", "limit of a statement of the handler's")
				return created
			})
			assert.NoError(t, err)
		})
	}
}

// TestPgxPlansStayWithTheIndex: plans that were cached on an empty table do not
// read all of it when it has grown.
func TestPgxPlansStayWithTheIndex(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	// A session tells the server what it has done when it likes, and when it ends
	// for certain: that of admin, which goes on, leaves the table alone.
	ended := func() {
		t.Helper()
		s.Close()
		assert.Eventually(t, "all other sessions have ended", func() bool {
			return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`) == 0
		})
	}
	elsewhere := func(sql string) {
		t.Helper()
		conn, err := pgx.ConnectConfig(t.Context(), s.admin.Config())
		assert.NoError(t, err)
		defer conn.Close(context.Background()) //nolint:errcheck // what it was asked for is done.
		_, err = conn.Exec(t.Context(), sql)
		assert.NoError(t, err, sql)
	}
	elsewhere(`VACUUM ANALYZE semel_records`) // one page at most: cheaper to read than any index
	ended()
	counted := func(column, from string) int64 {
		t.Helper()
		return s.number(t, `SELECT `+column+` FROM `+from)
	}
	const table, index = `pg_stat_user_tables WHERE relname = 'semel_records'`, `pg_stat_user_indexes WHERE indexrelname = 'semel_records_expires'`
	scans, lookups, swept := counted("seq_scan", table), counted("idx_scan", table), counted("idx_tup_read", index)
	var err error
	s.Store, err = pgxstore.Open(t.Context(), s.url, pgxstore.Config{MaxConns: 1, MaxTxConns: 1, Hooks: pgxHooks})
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	g := newGuard(t, s, semel.Config{})
	use := func(from int) {
		for i := from; i < from+8; i++ { // a plan is made for good at the sixth use
			for mode, work := range map[semel.Mode]func(context.Context) semel.Completion{semel.Leased: notPaying, semel.Joined: pgxPayOnce, semel.Atomic: pgxPayOnce} {
				_, err := g.Run(t.Context(), pgxCall(fmt.Sprint(mode, i), mode), work)
				assert.NoError(t, err)
			}
			_, err := s.Sweep(t.Context(), 10)
			assert.NoError(t, err)
		}
	}
	use(0)
	elsewhere(`SET search_path = public; INSERT INTO semel_records SELECT convert_to('many', 'UTF8'), convert_to(n::text, 'UTF8'), version, state, is_open, generation, operation_id, token, attempt,
		raw_digest, meaning_digest, policy, credential, trace, all_in_tx, reply_started, reply_kept,
		created, first_started, claimed, renewed, lease_end, finished, expires, status, header, body
		FROM (TABLE semel_records LIMIT 1) AS one, generate_series(1, 20000) AS n`)
	use(100)
	ended()
	assert.Eventually(t, "the server has counted", func() bool { return counted("idx_scan", table) > lookups+100 })
	assert.Equal(t, counted("seq_scan", table)-scans, 1, "times that the table was read from end to end: once, to fill it")
	assert.True(t, counted("idx_tup_read", index)-swept < 1000, "a sweep reads what has expired, and no more")
}

// TestPgxSharesItsTablesWithSQLStore: a fleet may have both.
func TestPgxSharesItsTablesWithSQLStore(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	h, err := sqlstore.OpenPostgreSQL("pgx", s.url)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	other, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	for _, c := range []struct {
		key            string
		begins, finish semel.Store
	}{{"a", s, other}, {"b", other, s}} {
		begun, err := c.begins.Begin(t.Context(), beginFor(c.key))
		assert.NoError(t, err)
		rival, err := c.finish.Begin(t.Context(), beginFor(c.key))
		assert.NoError(t, err)
		assert.Equal(t, rival.Outcome, semel.BeginBusy)
		assert.Equal(t, rival.Record.Claim(), begun.Record.Claim(), "the claim that the other sees")
		held, err := c.finish.Finish(t.Context(), begun.Record.Claim(), doneWith("made"))
		assert.NoError(t, err)
		assert.Equal(t, held.Status, semel.HeldYes)
		for _, store := range []semel.Store{s, other} {
			res, err := store.Begin(t.Context(), beginFor(c.key))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginReplay)
			assert.Equal(t, string(res.Record.Reply.Body), "made")
		}
	}
}

// TestPgxBusyHandlersHoldUpNoHeartbeat: all connections for transactions are
// taken, and claims and renewals go on.
func TestPgxBusyHandlersHoldUpNoHeartbeat(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{Config: pgxstore.Config{MaxConns: 1, MaxTxConns: 1, Hooks: pgxHooks}})
	_, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
		mustExec(ctx, t, tx, pgxPay, "paid")
		res, err := s.Begin(t.Context(), beginFor("another"))
		assert.NoError(t, err)
		_, err = s.Extend(t.Context(), res.Record.Claim(), semel.ExtendParams{Lease: time.Minute})
		assert.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, _, err = s.BeginAtomic(short, beginFor("a third"), time.Minute)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "a claim that needs a transaction")
		return created
	})
	assert.NoError(t, err)
}

func TestPgxJoin(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) (*pgxStore, *pgxpool.Pool, *semel.Binding[pgx.Tx]) {
		t.Helper()
		s := newPgx(t, pgxConfig{})
		pool, err := pgxpool.New(t.Context(), s.url)
		assert.NoError(t, err)
		t.Cleanup(pool.Close)
		b, err := semel.Bind[pgx.Tx](newGuard(t, s, semel.Config{}))
		assert.NoError(t, err)
		return s, pool, b
	}
	pay := func(tx pgx.Tx) func(context.Context) ([]byte, error) {
		return func(ctx context.Context) ([]byte, error) {
			_, err := tx.Exec(ctx, pgxPay, "paid")
			return []byte("made"), err
		}
	}
	call := pgxCall("k", semel.Joined)
	t.Run("the caller's commit saves row and reply", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
			assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				res, err := b.Join(t.Context(), tx, call, pay(tx))
				assert.Equal(t, res.Outcome, want)
				assert.Equal(t, string(res.Reply.Body), "made")
				return err
			}))
			assert.Equal(t, s.payments(t), 1)
		}
	})
	t.Run("the caller's rollback saves neither, and the key is free once it says so", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		tx, err := pool.Begin(t.Context())
		assert.NoError(t, err)
		res, err := b.Join(t.Context(), tx, call, pay(tx))
		assert.NoError(t, err)
		assert.NoError(t, tx.Rollback(t.Context()))
		assert.Equal(t, s.payments(t), 0)
		assert.Equal(t, s.stateOf(t), semel.StateRunning)
		assert.NoError(t, b.RolledBack(t.Context(), res))
		assert.Equal(t, s.stateOf(t), semel.StateReleased)
	})
	t.Run("until the transaction ends nobody takes over, and nobody waits for it", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		tx, err := pool.Begin(t.Context())
		assert.NoError(t, err)
		_, err = b.Join(t.Context(), tx, call, pay(tx))
		assert.NoError(t, err)
		s.advance(t, 2*semel.DefaultLease)
		taker := beginFor("k")
		res, err := s.Begin(t.Context(), taker)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.BeginBusy, "a takeover of the lapsed claim")
		assert.NoError(t, tx.Commit(t.Context()))
		res, err = s.Begin(t.Context(), taker)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.BeginReplay)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("a claim that was taken over is refused, and its rows are the caller's to undo", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		tx, err := pool.Begin(t.Context())
		assert.NoError(t, err)
		_, err = b.Join(t.Context(), tx, call, func(ctx context.Context) ([]byte, error) {
			s.advance(t, 2*semel.DefaultLease)
			res, err := s.Begin(ctx, beginFor("k"))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginClaimed)
			return pay(tx)(ctx)
		})
		assert.ErrorIs(t, err, semel.ErrSuperseded)
		assert.NoError(t, tx.Rollback(t.Context()))
		assert.Equal(t, s.payments(t), 0)
	})
	t.Run("a claim that was marked unknown meanwhile finishes by its own attempt (M5)", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := b.Join(t.Context(), tx, call, func(ctx context.Context) ([]byte, error) {
				rec, err := s.Get(ctx, call.Scope, call.Key)
				assert.NoError(t, err)
				_, err = s.Finish(ctx, rec.Claim(), semel.FinishParams{To: semel.StateUnknown})
				assert.NoError(t, err)
				return pay(tx)(ctx)
			})
			return err
		}))
		assert.Equal(t, s.stateOf(t), semel.StateDone)
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("a transaction that a failed statement has aborted cannot take the reply", func(t *testing.T) {
		t.Parallel()
		s, pool, b := setUp(t)
		tx, err := pool.Begin(t.Context())
		assert.NoError(t, err)
		_, err = b.Join(t.Context(), tx, call, func(ctx context.Context) ([]byte, error) {
			_, err := tx.Exec(ctx, raise("23505"))
			assert.True(t, err != nil, "the statement fails")
			return nil, nil
		})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.NoError(t, tx.Rollback(t.Context()))
		assert.Equal(t, s.payments(t), 0)
	})
}
