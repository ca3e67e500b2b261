package integration

import (
	"context"
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
