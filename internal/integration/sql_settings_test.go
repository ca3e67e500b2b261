package integration

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/sqlstore"
)

// What a handler sets in its transaction must not reach what Semel promises of
// its end.

func TestMariaDBClockIsNotTheHandlers(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "MariaDB")
	work := func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
		mustExecute(ctx, t, tx, s.server.insert, "paid")
		mustExecute(ctx, t, tx, "SET timestamp = 1")
		return created
	}
	for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
		res, err := runJoinedOn(t, s, work)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, want)
	}
	assert.Equal(t, s.payments(t), 1, "payments")
}

func TestMariaDBAutocommitByAQuotedNameIsFound(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string][]string{
		"in backticks":     {"SET `autocommit` = 0", "SET `autocommit` = 1"},
		"in double quotes": {"SET sql_mode = 'ANSI_QUOTES'", `SET "autocommit" = 0`, `SET @@session."autocommit" = 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, "MariaDB")
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "committed")
				for _, statement := range statements {
					mustExecute(ctx, t, tx, statement)
				}
				_, err := tx.ExecContext(ctx, "INSERT INTO missing VALUES (1)")
				assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "nothing else is let through")
				return created
			})
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown, "it is not said to have had no effect")
			assert.Equal(t, s.payments(t), 1, "what was committed")
		})
	}
}

func TestPostgresReplyOfACallersTransactionIsOnDiskWhateverWasSet(t *testing.T) {
	t.Parallel()
	for _, lapsed := range []bool{false, true} {
		t.Run(fmt.Sprintf("database/sql, lapsed %v", lapsed), func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, "PostgreSQL")
			for _, statement := range atCommit {
				s.exec(t, statement)
			}
			rec := begun(t, s, beginFor("k"))
			if lapsed {
				unknown(t, s, rec)
			}
			tx, err := s.test.BeginTx(t.Context(), nil)
			assert.NoError(t, err)
			defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
			for _, statement := range []string{noWait, "INSERT INTO payments (payer) VALUES ('paid')"} {
				_, err = tx.ExecContext(t.Context(), statement)
				assert.NoError(t, err, statement)
			}
			held, err := s.FinishTx(t.Context(), tx, rec.Claim(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes)
			assert.NoError(t, tx.Commit())
			assert.Equal(t, s.number(t, waitedFor), 1, "commits")
		})
		t.Run(fmt.Sprintf("pgx, lapsed %v", lapsed), func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			for _, statement := range atCommit {
				s.exec(t, statement)
			}
			rec := begun(t, s, beginFor("k"))
			if lapsed {
				unknown(t, s, rec)
			}
			tx, err := s.admin.Begin(t.Context())
			assert.NoError(t, err)
			defer tx.Rollback(context.Background()) //nolint:errcheck // after Commit it has nothing to do.
			for _, statement := range []string{noWait, "INSERT INTO payments (key) VALUES ('paid')"} {
				_, err = tx.Exec(t.Context(), statement)
				assert.NoError(t, err, statement)
			}
			held, err := s.FinishTx(t.Context(), tx, rec.Claim(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes)
			assert.NoError(t, tx.Commit(t.Context()))
			assert.Equal(t, s.number(t, waitedFor), 1, "commits")
		})
	}
}

// unknown makes the end of a claim unknown, so that it takes more than one
// statement to finish.
func unknown(t *testing.T, s semel.Store, rec *semel.Record) {
	t.Helper()
	held, err := s.Finish(t.Context(), rec.Claim(), semel.FinishParams{To: semel.StateUnknown, Retention: time.Hour})
	assert.NoError(t, err)
	assert.Equal(t, held.Status, semel.HeldYes)
}

// atCommit writes down how the transaction that inserts a payment is committed.
var atCommit = []string{
	"CREATE TABLE commits (how text)",
	"CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.commits VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'",
	"CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON payments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_commit()",
}

const (
	noWait     = "SET LOCAL synchronous_commit = off"
	waitedFor  = "SELECT count(*) FROM commits WHERE how = 'on'"
	replicated = "SELECT count(*) FROM commits WHERE how = 'remote_apply'"
)

func TestPostgresReplyIsOnDiskWhateverTheHandlerHasSet(t *testing.T) {
	t.Parallel()
	for set, counted := range map[string]string{noWait: waitedFor, "SET LOCAL synchronous_commit = remote_apply": replicated} {
		t.Run("database/sql: "+set, func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, "PostgreSQL")
			for _, statement := range atCommit {
				s.exec(t, statement)
			}
			_, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "paid")
				mustExecute(ctx, t, tx, set)
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, s.number(t, counted), 1, "commits")
		})
		for _, mode := range inTxModes {
			t.Run("pgx, "+mode.String()+": "+set, func(t *testing.T) {
				t.Parallel()
				s := newPgx(t, pgxConfig{})
				for _, statement := range atCommit {
					s.exec(t, statement)
				}
				_, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
					mustExec(ctx, t, tx, pgxPay, "paid")
					mustExec(ctx, t, tx, set)
					return created
				})
				assert.NoError(t, err)
				var got int
				assert.NoError(t, s.admin.QueryRow(t.Context(), counted).Scan(&got))
				assert.Equal(t, got, 1, "commits")
			})
		}
	}
}

// idleLimits are the deadlines of handlers, and the least and the most for which
// their transactions may be idle. A longer limit than the last no server has.
var idleLimits = map[time.Duration][2]time.Duration{
	0:                   {semel.DefaultHandlerDeadline + 10*time.Second, semel.DefaultHandlerDeadline + 10*time.Second},
	time.Minute:         {10 * time.Second, 70 * time.Second},
	15 * time.Minute:    {10 * time.Minute, 15*time.Minute + 10*time.Second},
	60 * 24 * time.Hour: {24 * 24 * time.Hour, 25 * 24 * time.Hour},
}

// mustBeIdleFor opens transactions under each of the deadlines, and looks at
// what open reads in them.
func mustBeIdleFor(t *testing.T, s interface {
	semel.Store
	semel.Joiner
}, read func(ctx context.Context) time.Duration,
) {
	t.Helper()
	for deadline, want := range idleLimits {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, deadline)
		}
		joint := s.Join(begun(t, s, beginFor(fmt.Sprint("deadline ", deadline))).Claim())
		t.Cleanup(func() { joint.Rollback() }) //nolint:errcheck // a store with an open one would wait for it for ever.
		got := read(joint.Context(ctx))
		assert.True(t, got >= want[0] && got <= want[1], "with a deadline of %v a transaction may be idle for %v; want %v to %v", deadline, got, want[0], want[1])
		held, err := joint.Commit(t.Context(), doneWith("x"))
		assert.NoError(t, err)
		assert.Equal(t, held.Status, semel.HeldYes)
		cancel()
	}
}

// idleIn reads for how long a transaction may be idle.
func (s *sqlStore) idleIn(ctx context.Context, t *testing.T, tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) time.Duration {
	t.Helper()
	var ms int64
	assert.NoError(t, tx.QueryRowContext(ctx, s.server.idle).Scan(&ms))
	return time.Duration(ms) * time.Millisecond
}

// A handler may call others for as long as it has time, and its transaction is
// not to be ended meanwhile (R17).
func TestTransactionMayBeIdleAsLongAsItsHandlerMayWork(t *testing.T) {
	t.Parallel()
	t.Run("database/sql", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			mustBeIdleFor(t, s, func(ctx context.Context) time.Duration { return s.idleIn(ctx, t, mustTx(ctx, t)) })
		})
	})
	for way, cfg := range pgxWays {
		t.Run("pgx "+way, func(t *testing.T) {
			t.Parallel()
			mustBeIdleFor(t, newPgx(t, cfg), func(ctx context.Context) time.Duration {
				tx, err := pgxstore.Tx(ctx)
				assert.NoError(t, err)
				var ms int64
				assert.NoError(t, tx.QueryRow(ctx, postgresIdle).Scan(&ms))
				return time.Duration(ms) * time.Millisecond
			})
		})
	}
}

func TestServersOwnIdleLimitIsKept(t *testing.T) {
	t.Parallel()
	for way, setting := range map[string]string{"PostgreSQL": "&idle_in_transaction_session_timeout=77000", "MariaDB": "?idle_transaction_timeout=77"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			db := sqlWays[way].prepared(t)
			db.dsn += setting
			s := db.store(t, way)
			joint := s.Join(begun(t, s, beginFor("k")).Claim())
			ctx := joint.Context(t.Context())
			assert.Equal(t, s.idleIn(ctx, t, mustTx(ctx, t)), 77*time.Second)
			assert.NoError(t, joint.Rollback())
		})
	}
}

// A limit of MariaDB's is the session's, and the next transaction on the
// connection may be no handler's.
func TestMariaDBIdleLimitOfAHandlerEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *sqlStore, joint semel.Joint, cancel context.CancelFunc){
		"that is committed": func(t *testing.T, _ *sqlStore, joint semel.Joint, _ context.CancelFunc) {
			_, err := joint.Commit(t.Context(), doneWith("x"))
			assert.NoError(t, err)
		},
		"that is rolled back": func(t *testing.T, _ *sqlStore, joint semel.Joint, _ context.CancelFunc) {
			assert.NoError(t, joint.Rollback())
		},
		"that ends with its context": func(_ *testing.T, _ *sqlStore, _ semel.Joint, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, "MariaDB")
			s.handles.Write.SetMaxOpenConns(1)
			before := s.idleIn(t.Context(), t, s.handles.Write)
			assert.True(t, before > 0, "a transaction may be idle for ever")
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			joint := s.Join(begun(t, s, beginFor("k")).Claim())
			ctx = joint.Context(ctx)
			assert.True(t, s.idleIn(ctx, t, mustTx(ctx, t)) > before, "the handler's is longer")
			end(t, s, joint, cancel)
			assert.Equal(t, s.idleIn(t.Context(), t, s.handles.Write), before, "of the next transaction on the connection")
		})
	}
}
