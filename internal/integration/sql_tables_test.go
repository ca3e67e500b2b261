package integration

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// postgresShadows are functions that fail, for whoever looks for PostgreSQL's
// along the path of intoShadows.
const postgresShadows = `CREATE SCHEMA shadows;
CREATE FUNCTION shadows.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a shadow'; END $$;
CREATE FUNCTION shadows.statement_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a shadow'; END $$;
CREATE FUNCTION shadows.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a shadow'; END $$;
CREATE FUNCTION shadows.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a shadow'; END $$;
CREATE FUNCTION shadows.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a shadow'; END $$;`

const intoShadows = "SET LOCAL search_path = shadows, pg_catalog, public"

func TestServersJoinedCommitWritesTheStoresOwnTables(t *testing.T) {
	t.Parallel()
	prepare := map[string]string{
		// A trigger that does not find its sequence everywhere.
		"PostgreSQL": "DROP TRIGGER count_write ON semel_records;" + postgresShadows,
		"MariaDB":    "CREATE PROCEDURE make_shadow() CREATE TEMPORARY TABLE semel_records AS SELECT * FROM semel_records",
	}
	for name, shadow := range map[string]map[string][]string{
		"and not a temporary one of that name": {
			"PostgreSQL": {"CREATE TEMPORARY TABLE semel_records AS TABLE semel_records"},
			"MariaDB":    {"CREATE TEMPORARY TABLE semel_records AS SELECT * FROM semel_records"},
		},
		"and not a temporary one that a procedure has made": {
			"PostgreSQL": {"DO 'BEGIN CREATE TEMPORARY TABLE semel_records AS TABLE semel_records; END'"},
			"MariaDB":    {"CALL make_shadow()"},
		},
		"wherever names are looked for": {
			"PostgreSQL": {"SET LOCAL search_path = pg_catalog", "SET search_path = pg_catalog"},
			"MariaDB":    {"USE information_schema"},
		},
		"and calls the database's own functions": {
			"PostgreSQL": {intoShadows},
			"MariaDB":    {"SET timestamp = DEFAULT"}, // a function of one's own has the name of none of the server's
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *sqlStore) {
				s.exec(t, prepare[s.way])
				one := overSQL(t, s.handles)
				_, err := one.run(t, "k", semel.Config{}, func(ctx context.Context) semel.Completion {
					assert.NoError(t, one.leave(ctx, strings.NewReplacer("?", "'paid'", "$1", "'paid'").Replace(s.server.insert)))
					for _, statement := range shadow[s.way] {
						assert.NoError(t, one.leave(ctx, statement), statement)
					}
					return created
				})
				assert.NoError(t, err)
				rec, err := s.Get(t.Context(), joined("k").Scope, "k")
				assert.NoError(t, err)
				assert.Equal(t, rec.State, semel.StateDone, "what others see")
				assert.Equal(t, s.payments(t), 1, "payments")
			})
		})
	}
	t.Run("in a transaction of the caller's, wherever names are looked for", func(t *testing.T) {
		t.Parallel()
		elsewhere := map[string]string{"PostgreSQL": "SET LOCAL search_path = pg_catalog", "MariaDB": "USE information_schema"}
		onServers(t, func(t *testing.T, s *sqlStore) {
			s.exec(t, prepare[s.way])
			one := overSQL(t, s.handles)
			bound, err := semel.Bind[*sql.Tx](newGuard(t, one.Store, semel.Config{}))
			assert.NoError(t, err)
			tx, err := s.test.BeginTx(t.Context(), nil)
			assert.NoError(t, err)
			defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
			_, err = bound.Join(t.Context(), tx, joined("k"), func(ctx context.Context) ([]byte, error) {
				_, err := tx.ExecContext(ctx, elsewhere[s.way])
				return nil, err
			})
			assert.NoError(t, err)
			assert.NoError(t, tx.Commit())
			again, err := s.by(t, s.server.driver).Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, err)
			assert.Equal(t, again.State, semel.StateDone, "what others see")
		})
	})
}

func TestPgBouncerWhatAHandlerLeavesOnTheServer(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "PostgreSQL behind PgBouncer")
	for _, c := range postgresTraces {
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			_, err := tx.ExecContext(ctx, c.leave)
			assert.ErrorIs(t, err, semel.ErrTxMisuse, "%s is refused", c.name)
			return semel.Completion{Verdict: semel.VerdictNotApplied}
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
	}
	// What is not seen stays there, and the server's connection is the next
	// client's.
	_, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
		mustExecute(ctx, t, tx, "DO 'BEGIN CREATE TEMPORARY TABLE semel_records (LIKE semel_records); END'")
		return created
	})
	assert.NoError(t, err)
	var shadows int
	assert.NoError(t, s.handles.Write.QueryRow("SELECT count(*) FROM pg_class WHERE oid = to_regclass('pg_temp.semel_records')").Scan(&shadows))
	assert.Equal(t, shadows, 1, "temporary tables on the server's connection")
	res, err := runJoinedOn(t, s, func(context.Context, *sqlstore.JoinedTx) semel.Completion {
		t.Error("it runs again")
		return created
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
}
