package integration

import (
	"context"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
)

func TestPgxCommitWritesTheStoresOwnTables(t *testing.T) {
	t.Parallel()
	for name, shadow := range map[string]string{
		"and not a temporary one of that name":           "CREATE TEMPORARY TABLE semel_records AS TABLE semel_records",
		"and not a temporary one that a block has made":  "DO 'BEGIN CREATE TEMPORARY TABLE semel_records AS TABLE semel_records; END'",
		"wherever names are looked for":                  "SET LOCAL search_path = pg_catalog",
		"wherever the session looks for names from then": "SET search_path = pg_catalog",
		"and calls the database's own functions":         intoShadows,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTxMode(t, func(t *testing.T, mode semel.Mode) {
				t.Helper()
				s := newPgx(t, pgxConfig{})
				s.exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET search_path', current_database()); END $$`) // the server's clock
				s.exec(t, postgresShadows)
				s = openPgx(t, services.SharedPostgres(t), s.url, pgxConfig{})
				res, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
					c := pgxPayOnce(ctx)
					mustExec(ctx, t, tx, shadow)
					return c
				})
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
				assert.Equal(t, s.stateOf(t), semel.StateDone, "what others see")
				assert.Equal(t, s.payments(t), 1)
			})
		})
	}
}

func TestPgxBehindAPoolerWhatAHandlerLeavesOnTheServer(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{pgbouncer: true, Config: pgxstore.Config{TransactionPooler: true}})
	for _, c := range postgresTraces {
		res, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			_, err := tx.Exec(ctx, c.leave)
			assert.ErrorIs(t, err, semel.ErrTxMisuse, "%s is refused", c.name)
			return semel.Completion{Verdict: semel.VerdictNotApplied}
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
	}
	// What is not seen stays there, and the server's connection is the next
	// client's.
	_, err := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
		mustExec(ctx, t, tx, "DO 'BEGIN CREATE TEMPORARY TABLE semel_records (LIKE semel_records); END'")
		return created
	})
	assert.NoError(t, err)
	assert.Equal(t, s.number(t, "SELECT count(*) FROM pg_class WHERE relname = 'semel_records' AND relpersistence = 't'"), 1, "temporary tables")
	res, err := runPgx(t, s, semel.Joined, func(context.Context, *pgxstore.JoinedTx) semel.Completion {
		t.Error("it runs again")
		return created
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
}
