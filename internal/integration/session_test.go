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

// What a handler leaves on its connection, which others have after it.

// trace is something that outlives its transaction.
type trace struct {
	name, leave string
	find        string // is 1 where it was left
	spoils      bool   // the commit
	late        bool   // it is there once the transaction is committed
}

var sqliteTraces = []trace{
	{name: "a setting", leave: "PRAGMA busy_timeout = 1", find: "PRAGMA busy_timeout"},
	{name: "a setting that forbids to write", leave: "PRAGMA query_only = ON", find: "PRAGMA query_only", spoils: true},
	{name: "a temporary table", leave: "CREATE TEMP TABLE left_behind (a)", find: "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'left_behind'"},
	{name: "a temporary table by a quoted name", leave: "CREATE TABLE 'temp'.left_behind (a)", find: "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'left_behind'"},
}

var postgresTraces = []trace{
	{name: "a setting", leave: "SET statement_timeout = '7s'", find: "SELECT (current_setting('statement_timeout') = '7s')::int"},
	{name: "a setting by a call", leave: "SELECT set_config('statement_timeout', '7s', false)", find: "SELECT (current_setting('statement_timeout') = '7s')::int"},
	{name: "a temporary table", leave: "CREATE TEMP TABLE left_behind (a int)", find: "SELECT (to_regclass('pg_temp.left_behind') IS NOT NULL)::int"},
	{name: "a temporary table by a quoted name", leave: `CREATE TABLE "pg_temp".left_behind (a int)`, find: "SELECT (to_regclass('pg_temp.left_behind') IS NOT NULL)::int"},
	{name: "a listener", leave: "LISTEN left_behind", find: "SELECT count(*) FROM pg_listening_channels()", late: true},
	{name: "a prepared statement", leave: "PREPARE left_behind AS SELECT 1", find: "SELECT count(*) FROM pg_prepared_statements WHERE name = 'left_behind'"},
	{name: "a cursor", leave: "DECLARE left_behind CURSOR WITH HOLD FOR SELECT 1", find: "SELECT count(*) FROM pg_cursors WHERE name = 'left_behind'"},
	{name: "a setting by a call whose last word is true", leave: "SELECT set_config('statement_timeout', '7s', NOT TRUE)", find: "SELECT (current_setting('statement_timeout') = '7s')::int"},
	{name: "a setting by a view", leave: "UPDATE pg_settings SET setting = '7s' WHERE name = 'statement_timeout'", find: "SELECT (current_setting('statement_timeout') = '7s')::int"},
	{name: "a temporary table of a plan", leave: "EXPLAIN ANALYZE CREATE TEMP TABLE left_behind AS SELECT 1", find: "SELECT (to_regclass('pg_temp.left_behind') IS NOT NULL)::int"},
	{name: "a temporary view", leave: "CREATE OR REPLACE GLOBAL TEMP VIEW left_behind AS SELECT 1", find: "SELECT (to_regclass('pg_temp.left_behind') IS NOT NULL)::int"},
	{name: "a temporary table by the search path", leave: "SET LOCAL search_path = pg_temp; CREATE TABLE left_behind (a int); SET LOCAL search_path TO DEFAULT", find: "SELECT (to_regclass('pg_temp.left_behind') IS NOT NULL)::int"},
	{name: "a lock by a name in escapes", leave: `SELECT U&"pg_advisory_l\006fck"(8)`, find: "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = 8"},
	{name: "a lock", leave: "SELECT pg_advisory_lock(7)", find: "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = 7"},
}

var mariadbTraces = []trace{
	{name: "a setting", leave: "SET SESSION sql_mode = ''", find: "SELECT @@sql_mode = ''"},
	{name: "a variable", leave: "SET @left_behind = 1", find: "SELECT @left_behind"},
	{name: "a variable by a query", leave: "SELECT @left_behind := 1", find: "SELECT @left_behind"},
	{name: "another database in use", leave: "USE information_schema", find: "SELECT database() = 'information_schema'"},
	{name: "a temporary table", leave: "CREATE TEMPORARY TABLE left_behind AS SELECT 1 AS a", find: "SELECT a FROM left_behind"},
	{name: "a prepared statement", leave: "PREPARE left_behind FROM 'SELECT 1'", find: "EXECUTE left_behind"},
	{name: "a lock", leave: "SELECT GET_LOCK('left_behind', 1)", find: "SELECT IS_USED_LOCK('left_behind') = connection_id()"},
	{name: "a lock by a quoted name", leave: "SELECT `get_lock`('left_behind', 1)", find: "SELECT IS_USED_LOCK('left_behind') = connection_id()"},
	{name: "a setting that a procedure makes", leave: "CALL set_left_behind()", find: "SELECT @@max_sort_length = 65"},
}

// oneConnection is a store whose business transactions have one connection.
type oneConnection struct {
	semel.Store

	mode semel.Mode
	// leave runs a statement in the transaction of ctx, and number a query, which
	// answers with one or fails.
	leave  func(ctx context.Context, statement string) error
	number func(ctx context.Context, query string) (int64, error)
}

// find reports whether a query answers with 1.
func (s *oneConnection) find(ctx context.Context, query string) bool {
	n, err := s.number(ctx, query)
	return err == nil && n == 1
}

func (s *oneConnection) run(t *testing.T, key string, cfg semel.Config, work func(ctx context.Context) semel.Completion) (semel.Result, error) {
	t.Helper()
	return newGuard(t, s.Store, cfg).Run(t.Context(), pgxCall(key, s.mode), work)
}

// overSQL is such a store over database/sql, with the database's own clock: that
// of the tests is a function, and found only in the database that is in use.
func overSQL(t testing.TB, h *sqlstore.Handles) *oneConnection {
	t.Helper()
	h.Write.SetMaxOpenConns(1)
	s, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	return &oneConnection{Store: s, mode: semel.Joined, leave: func(ctx context.Context, statement string) error {
		tx, err := sqlstore.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, statement)
		return err
	}, number: func(ctx context.Context, query string) (int64, error) {
		tx, err := sqlstore.Tx(ctx)
		if err != nil {
			return 0, err
		}
		var n sql.NullInt64
		err = tx.QueryRowContext(ctx, query).Scan(&n)
		return n.Int64, err
	}}
}

// overPgx is one by pgx.
func overPgx(t testing.TB, mode semel.Mode) *oneConnection {
	t.Helper()
	s := newPgx(t, pgxConfig{Config: pgxstore.Config{MaxTxConns: 1}})
	return &oneConnection{Store: s, mode: mode, leave: func(ctx context.Context, statement string) error {
		tx, err := pgxstore.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statement)
		return err
	}, number: func(ctx context.Context, query string) (n int64, err error) {
		tx, err := pgxstore.Tx(ctx)
		if err != nil {
			return 0, err
		}
		return n, tx.QueryRow(ctx, query).Scan(&n)
	}}
}

// sessionWays are the stores that have business transactions.
var sessionWays = map[string]struct {
	open   func(t *testing.T) *oneConnection
	traces []trace
}{
	"SQLite": {func(t *testing.T) *oneConnection {
		t.Helper()
		return overSQL(t, newSQLite(t).handles)
	}, sqliteTraces},
	"PostgreSQL": {func(t *testing.T) *oneConnection {
		t.Helper()
		return overSQL(t, newSQL(t, "PostgreSQL").handles)
	}, postgresTraces},
	"MariaDB": {func(t *testing.T) *oneConnection {
		t.Helper()
		s := newSQL(t, "MariaDB")
		s.exec(t, "CREATE PROCEDURE set_left_behind() SET SESSION max_sort_length = 65")
		return overSQL(t, s.handles)
	}, mariadbTraces},
	"pgx joined": {func(t *testing.T) *oneConnection { t.Helper(); return overPgx(t, semel.Joined) }, postgresTraces},
	"pgx atomic": {func(t *testing.T) *oneConnection { t.Helper(); return overPgx(t, semel.Atomic) }, postgresTraces},
}

func TestNothingOfAHandlerIsLeftOnItsConnection(t *testing.T) {
	t.Parallel()
	for name, way := range sessionWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := way.open(t)
			absent := func(after string, c trace) {
				_, err := s.run(t, c.name+", looked for "+after, semel.Config{}, func(ctx context.Context) semel.Completion {
					assert.True(t, !s.find(ctx, c.find), "%s is found %s", c.name, after)
					return created
				})
				assert.NoError(t, err)
			}
			for _, c := range way.traces {
				leaving := func(ctx context.Context) {
					assert.NoError(t, s.leave(ctx, c.leave), c.leave)
					assert.Equal(t, s.find(ctx, c.find), !c.late, "%s is found in its own transaction", c.name)
				}
				_, err := s.run(t, c.name+", committed", semel.Config{}, func(ctx context.Context) semel.Completion {
					leaving(ctx)
					return created
				})
				assert.Equal(t, err != nil, c.spoils, "%s: an error of the commit: %v", c.name, err)
				absent("after a commit", c)
				_, err = s.run(t, c.name+", rolled back", semel.Config{}, func(ctx context.Context) semel.Completion {
					leaving(ctx)
					return semel.Completion{Verdict: semel.VerdictNotApplied}
				})
				assert.NoError(t, err)
				absent("after a rollback", c)
			}
			last := way.traces[len(way.traces)-1]
			_, err := s.run(t, "past its deadline", semel.Config{HandlerDeadline: time.Second}, func(ctx context.Context) semel.Completion {
				assert.NoError(t, s.leave(ctx, last.leave), last.leave)
				<-ctx.Done()
				assert.Eventually(t, "the transaction is over", func() bool { return s.leave(context.WithoutCancel(ctx), "SELECT 1") != nil })
				return created
			})
			assert.True(t, err != nil, "nothing is committed after the deadline")
			absent("after the deadline", last)
		})
	}
}

func TestWhatEndsWithTheTransactionCostsNoConnection(t *testing.T) {
	t.Parallel()
	postgres := []string{
		"SET LOCAL statement_timeout = '7s'", "SELECT set_config('statement_timeout', '7s', true)",
		"CREATE TEMP TABLE gone (a int) ON COMMIT DROP", "SELECT pg_advisory_xact_lock(7)",
	}
	for name, c := range map[string]struct {
		session    string
		statements []string
	}{
		"PostgreSQL": {"SELECT pg_backend_pid()", postgres},
		"pgx joined": {"SELECT pg_backend_pid()", postgres},
		"pgx atomic": {"SELECT pg_backend_pid()", postgres},
		"MariaDB":    {"SELECT connection_id()", []string{"SET STATEMENT sql_mode = '' FOR SELECT 1", "DELETE FROM payments"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessionWays[name].open(t)
			var first int64
			for i, statement := range append(c.statements, "SELECT 1") {
				_, err := s.run(t, fmt.Sprint(i), semel.Config{}, func(ctx context.Context) semel.Completion {
					id, err := s.number(ctx, c.session)
					assert.NoError(t, err)
					if i == 0 {
						first = id
					}
					assert.Equal(t, id, first, "the connection, before %s", statement)
					assert.NoError(t, s.leave(ctx, statement), statement)
					return created
				})
				assert.NoError(t, err)
			}
		})
	}
}
