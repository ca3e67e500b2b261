package integration

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/sqlstore"
)

// emptyServer opens a database without a table.
func emptyServer(t *testing.T, way string) (*sqlServer, *sqlstore.Handles) {
	t.Helper()
	server := sqlWays[way]
	dsn, _ := server.database(t)
	h, err := server.open(server.driver, dsn)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return server, h
}

// onEmpty runs a test on an empty database of each kind.
func onEmpty(t *testing.T, ways []string, test func(t *testing.T, server *sqlServer, h *sqlstore.Handles)) {
	t.Helper()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			server, h := emptyServer(t, way)
			test(t, server, h)
		})
	}
}

var bothServers = []string{"PostgreSQL", "MariaDB"}

func TestServersStoreRefusesASchemaThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	onEmpty(t, bothServers, func(t *testing.T, _ *sqlServer, h *sqlstore.Handles) {
		_, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "migrate it first")
		assert.NoError(t, sqlstore.Migrate(t.Context(), h))
		_, err = h.Write.Exec("INSERT INTO semel_migrations VALUES (99, '0099_future', '2031-01-01')")
		assert.NoError(t, err)
		_, err = sqlstore.New(t.Context(), h, sqlstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.ErrorIs(t, sqlstore.Migrate(t.Context(), h), migrate.ErrNewer)
	})
}

func TestServersMayBeMigratedBySeveralAtOnce(t *testing.T) {
	t.Parallel()
	onEmpty(t, []string{"PostgreSQL", "PostgreSQL behind PgBouncer", "MariaDB"}, func(t *testing.T, _ *sqlServer, h *sqlstore.Handles) {
		const several = 6
		errs := make([]error, several)
		var all sync.WaitGroup
		for i := range several {
			all.Go(func() { errs[i] = sqlstore.Migrate(t.Context(), h) })
		}
		all.Wait()
		assert.NoError(t, errors.Join(errs...))
		var noted int
		assert.NoError(t, h.Read.QueryRow("SELECT count(*) FROM semel_migrations").Scan(&noted))
		assert.Equal(t, noted, 1, "migrations noted")
	})
}

func TestServersMigrateDown(t *testing.T) {
	t.Parallel()
	onEmpty(t, bothServers, func(t *testing.T, server *sqlServer, h *sqlstore.Handles) {
		for range 2 {
			applied, err := migrate.Up(t.Context(), h.Write, server.migrations)
			assert.NoError(t, err)
			assert.Equal(t, applied, []string{"0001_init"})
			undone, err := migrate.Down(t.Context(), h.Write, server.migrations)
			assert.NoError(t, err)
			assert.Equal(t, undone, "0001_init")
		}
		var left int
		assert.NoError(t, h.Read.QueryRow(`SELECT count(*) FROM information_schema.tables
			WHERE table_name LIKE 'semel%' AND table_name <> 'semel_migrations' AND table_schema = `+server.schema).Scan(&left))
		assert.Equal(t, left, 0, "tables left")
	})
}

func TestPostgresMigrationIsAllOrNothing(t *testing.T) {
	t.Parallel()
	_, h := emptyServer(t, "PostgreSQL")
	_, err := h.Write.Exec("CREATE TABLE semel_audit (mine int)")
	assert.NoError(t, err)
	err = sqlstore.Migrate(t.Context(), h)
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	assert.Contains(t, err.Error(), "0001_init.up, statement ")
	assert.Contains(t, err.Error(), "semel_audit")
	var tables int
	assert.NoError(t, h.Read.QueryRow("SELECT count(*) FROM pg_class WHERE relname IN ('semel_records', 'semel_migrations')").Scan(&tables))
	assert.Equal(t, tables, 0, "tables of the migration that failed")
}

// MariaDB commits each statement of a migration.
func TestMariaDBMigrationThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	_, h := emptyServer(t, "MariaDB")
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	for _, lost := range []string{"DROP TRIGGER semel_audit_no_delete", "DROP TABLE semel_audit", "DROP TABLE semel_records"} {
		for _, statement := range []string{lost, "DELETE FROM semel_migrations"} {
			_, err := h.Write.Exec(statement)
			assert.NoError(t, err, statement)
		}
		assert.NoError(t, sqlstore.Migrate(t.Context(), h), "after %s", lost)
		_, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
		assert.NoError(t, err)
	}
}

func TestServersAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	onEmpty(t, bothServers, func(t *testing.T, _ *sqlServer, h *sqlstore.Handles) {
		assert.NoError(t, sqlstore.Migrate(t.Context(), h))
		_, err := h.Write.Exec(`INSERT INTO semel_audit (at, scope, idempotency_key, attempt, settled_to, actor, reason, override)
			VALUES (1, 's', 'k', 1, 2, 'ops', 'asked the bank', false)`)
		assert.NoError(t, err)
		for _, statement := range []string{"UPDATE semel_audit SET actor = 'nobody'", "DELETE FROM semel_audit"} {
			_, err := h.Write.Exec(statement)
			assert.True(t, err != nil, "%s is refused", statement)
			assert.Contains(t, err.Error(), "append-only")
		}
	})
}

func TestPostgresStoreSaysHowDurableItIs(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "PostgreSQL")
	assert.Equal(t, semel.ClassOf(s), semel.Durable)
	s.exec(t, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$")
	assert.Equal(t, semel.ClassOf(s.by(t, s.server.driver)), semel.BestEffort, "where the server does not wait for its disk")
	_, err := semel.New(s, semel.Hold(), semel.Config{StoreTimeout: s.StatementLimit()})
	assert.ErrorIs(t, err, semel.ErrConfig, "a caller that gives up no later than the server does (R15)")
}

func TestMariaDBStoreSaysHowDurableItIs(t *testing.T) {
	t.Parallel()
	s := newSQL(t, "MariaDB")
	for _, c := range []struct {
		name, setting, value string
		want                 semel.StoreClass
	}{
		{"as it is", "", "", semel.DurableUnlessFailover},
		{"with a log that waits for no disk", "@@innodb_flush_log_at_trx_commit", "2", semel.BestEffort},
		{"with a binary log, which by default waits for none", "@@log_bin", "1", semel.BestEffort},
		{"with a binary log that waits for the disk", "NOT @@log_bin OR @@sync_binlog", "NOT 1 OR 1", semel.DurableUnlessFailover},
	} {
		w, name := newWire(t, s.server.driver)
		if c.setting != "" {
			w.rewrite = func(statement string) string { return strings.Replace(statement, c.setting, c.value, 1) }
		}
		h, err := sqlstore.OpenMariaDB(name, s.dsn)
		assert.NoError(t, err)
		defer h.Close()
		again, err := sqlstore.New(t.Context(), h, sqlstore.Config{Class: semel.DurableUnlessFailover})
		assert.NoError(t, err)
		assert.Equal(t, again.Class(), c.want, c.name)
	}
	_, err := sqlstore.New(t.Context(), s.handles, sqlstore.Config{Class: "for ever"})
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Contains(t, err.Error(), "Class")
}

func TestOpenServersRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.OpenPostgreSQL("none", "postgres://localhost/x")
	assert.ErrorIs(t, err, semel.ErrConfig, "a driver that is not registered")
	assert.Contains(t, err.Error(), `pgx`, "those that are")
	assert.Contains(t, err.Error(), `pgx/v5/stdlib", whose name is "pgx"`)
	_, err = sqlstore.OpenMariaDB("none", "root@tcp(127.0.0.1:1)/x")
	assert.ErrorIs(t, err, semel.ErrConfig, "a driver that is not registered")
	assert.Contains(t, err.Error(), `go-sql-driver/mysql", whose name is "mysql"`)
	_, err = sqlstore.OpenMariaDB("mysql", "not a name")
	assert.ErrorIs(t, err, semel.ErrConfig, "a data source name that cannot be read")
	_, err = sqlstore.OpenPostgreSQL("pgx", "postgres://127.0.0.1:1/x")
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "a server that is not there")
	_, err = sqlstore.OpenMariaDB("mysql", "root@tcp(127.0.0.1:1)/x")
	assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "a server that is not there")
}

// Its settings would be those of other clients from then on.
func TestOpenPostgreSQLRefusesAPooler(t *testing.T) {
	t.Parallel()
	dsn, _ := sqlWays["PostgreSQL behind PgBouncer"].database(t)
	_, err := sqlstore.OpenPostgreSQL("pgx", dsn)
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Contains(t, err.Error(), "OpenPostgreSQLThroughPooler")
}
