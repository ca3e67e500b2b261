package integration

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/pgxstore"
)

// pgx lets the error of Query be left to its rows.
func TestPgxRowsOfAQueryThatFailedHaveItsError(t *testing.T) {
	t.Parallel()
	collected := func(rows pgx.Rows, _ error) error {
		_, err := pgx.CollectRows(rows, pgx.RowTo[int])
		assert.True(t, rows.CommandTag().String() == "" && rows.FieldDescriptions() == nil && rows.RawValues() == nil, "the rows have nothing")
		assert.True(t, !rows.Next() && rows.Scan() != nil, "there is no row")
		return err
	}
	eachTxMode(t, func(t *testing.T, mode semel.Mode) {
		t.Helper()
		s := newPgx(t, pgxConfig{})
		var kept *pgxstore.JoinedTx
		_, err := runPgx(t, s, mode, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
			kept = tx
			assert.ErrorIs(t, collected(tx.Query(ctx, "COMMIT")), semel.ErrTxMisuse, "a query that is refused")
			b := &pgx.Batch{}
			b.Queue("COMMIT")
			results := tx.SendBatch(ctx, b)
			assert.ErrorIs(t, collected(results.Query()), semel.ErrTxMisuse, "a query of a batch that is refused")
			assert.ErrorIs(t, results.Close(), semel.ErrTxMisuse)
			open, err := tx.Query(ctx, "SELECT 1")
			assert.NoError(t, err)
			assert.ErrorIs(t, collected(tx.Query(ctx, "SELECT 1")), semel.ErrTxMisuse, "a query while other rows are open")
			open.Close()
			assert.NoError(t, open.Err())
			part, err := tx.Begin(ctx)
			assert.NoError(t, err)
			assert.Contains(t, collected(part.Query(ctx, "SELECT nothing")).Error(), "42703")
			assert.NoError(t, part.Rollback(ctx))
			_, err = tx.Exec(ctx, raise("40001"))
			assert.Contains(t, err.Error(), "40001")
			assert.ErrorIs(t, collected(tx.Query(ctx, "SELECT 1")), semel.ErrCommitRefused, "a query in a transaction that is lost")
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.ErrorIs(t, collected(kept.Query(t.Context(), "SELECT 1")), semel.ErrTxMisuse, "a query after the handler")
	})
}

// backend is the process of the server that has the transaction.
func backend(ctx context.Context, t testing.TB, tx *pgxstore.JoinedTx) (pid int) {
	t.Helper()
	assert.NoError(t, tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid))
	return pid
}

func TestPgxConnectionOfATransactionThatWasBrokenIsNotKept(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"} {
		for name, end := range map[string]semel.Completion{"commit": created, "rollback": {Verdict: semel.VerdictNotApplied}} {
			t.Run("by "+sql+" before the "+name, func(t *testing.T) {
				t.Parallel()
				s := newPgx(t, pgxConfig{Config: pgxstore.Config{MaxTxConns: 1}})
				var pid int
				res, _ := runPgx(t, s, semel.Joined, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion { //nolint:errcheck // the outcome tells.
					pid = backend(ctx, t, tx)
					mustExec(ctx, t, tx, "SELECT 'harmless'", rewriter(sql+"; SET statement_timeout = '7s'"))
					return end
				})
				assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
				_, err := newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("next", semel.Joined), func(ctx context.Context) semel.Completion {
					tx, err := pgxstore.Tx(ctx)
					assert.NoError(t, err)
					assert.True(t, backend(ctx, t, tx) != pid, "it has another connection")
					return created
				})
				assert.NoError(t, err)
			})
		}
	}
}
