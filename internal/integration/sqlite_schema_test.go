package integration

import (
	"database/sql"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/sqlstore"
)

func newHandles(t *testing.T) *sqlstore.Handles {
	t.Helper()
	h, err := sqlstore.OpenSQLite("sqlite", filepath.Join(t.TempDir(), "semel.db"))
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

func TestSQLiteStoreRefusesASchemaThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	const forget = "DELETE FROM semel_migrations"
	const future = "INSERT INTO semel_migrations VALUES (99, '0099_future', '2031-01-01')"
	for _, c := range []struct {
		name  string
		setUp func(t *testing.T, h *sqlstore.Handles)
		says  string
	}{
		{"none", func(*testing.T, *sqlstore.Handles) {}, "no tables of Semel yet: migrate it first"},
		{"an empty one", func(t *testing.T, h *sqlstore.Handles) {
			assert.NoError(t, sqlstore.Migrate(t.Context(), h))
			_, err := h.Write.Exec(forget)
			assert.NoError(t, err)
		}, "no tables of Semel yet: migrate it first"},
		{"a newer one", func(t *testing.T, h *sqlstore.Handles) {
			assert.NoError(t, sqlstore.Migrate(t.Context(), h))
			_, err := h.Write.Exec(future)
			assert.NoError(t, err)
		}, "schema version 99 and this program knows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHandles(t)
			c.setUp(t, h)
			_, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), c.says)
		})
	}
}

func TestSQLiteStoreRefusesHandlesThatItDidNotOpen(t *testing.T) {
	t.Parallel()
	h := newHandles(t)
	for name, h := range map[string]*sqlstore.Handles{"none": nil, "the zero value": {}, "the program's own": {Write: h.Write, Read: h.Read}} {
		_, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig, name)
		assert.Contains(t, err.Error(), "OpenSQLite", name)
		assert.ErrorIs(t, sqlstore.Migrate(t.Context(), h), semel.ErrConfig, name)
	}
}

func TestSQLiteStoreSaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	assert.Equal(t, semel.ClassOf(s), semel.Durable)
	_, err := semel.New(s, semel.Hold(), semel.Config{StoreTimeout: 4 * time.Second})
	assert.ErrorIs(t, err, semel.ErrConfig, "a caller that gives up no later than SQLite does (R15)")
	assert.Contains(t, err.Error(), "StoreTimeout is 4s")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	t.Run("applies what is missing, once", func(t *testing.T) {
		t.Parallel()
		h := newHandles(t)
		applied, err := migrate.Up(t.Context(), h.Write, migrate.SQLite())
		assert.NoError(t, err)
		assert.Equal(t, applied, []string{"0001_init"})
		applied, err = migrate.Up(t.Context(), h.Write, migrate.SQLite())
		assert.NoError(t, err)
		assert.Equal(t, len(applied), 0, "applied the second time")
	})
	t.Run("down leaves nothing of Semel behind, and up works again", func(t *testing.T) {
		t.Parallel()
		h := newHandles(t)
		for range 2 {
			_, err := migrate.Up(t.Context(), h.Write, migrate.SQLite())
			assert.NoError(t, err)
			undone, err := migrate.Down(t.Context(), h.Write, migrate.SQLite())
			assert.NoError(t, err)
			assert.Equal(t, undone, "0001_init")
		}
		var left int
		assert.NoError(t, h.Read.QueryRow(`SELECT count(*) FROM sqlite_schema
			WHERE name LIKE 'semel%' AND name <> 'semel_migrations'`).Scan(&left))
		assert.Equal(t, left, 0, "tables, indexes and triggers left")
		undone, err := migrate.Down(t.Context(), h.Write, migrate.SQLite())
		assert.NoError(t, err)
		assert.Equal(t, undone, "", "undone when there is nothing")
	})
	t.Run("does not touch a newer schema", func(t *testing.T) {
		t.Parallel()
		h := newHandles(t)
		_, err := migrate.Up(t.Context(), h.Write, migrate.SQLite())
		assert.NoError(t, err)
		_, err = h.Write.Exec("INSERT INTO semel_migrations VALUES (99, '0099_future', '2031-01-01')")
		assert.NoError(t, err)
		err = sqlstore.Migrate(t.Context(), h)
		assert.ErrorIs(t, err, migrate.ErrNewer)
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.True(t, !errors.Is(err, semel.ErrStoreUnavailable), "the store can be reached")
		_, err = migrate.Down(t.Context(), h.Write, migrate.SQLite())
		assert.ErrorIs(t, err, migrate.ErrNewer)
	})
	t.Run("refuses a version that no migration has", func(t *testing.T) {
		t.Parallel()
		h := newHandles(t)
		_, err := migrate.Up(t.Context(), h.Write, migrate.SQLite())
		assert.NoError(t, err)
		_, err = h.Write.Exec("UPDATE semel_migrations SET version = -1")
		assert.NoError(t, err)
		_, down := migrate.Down(t.Context(), h.Write, migrate.SQLite())
		_, version := migrate.Version(t.Context(), h.Read, migrate.SQLite())
		for name, err := range map[string]error{"up": sqlstore.Migrate(t.Context(), h), "down": down, "version": version} {
			assert.True(t, err != nil, name)
			assert.Contains(t, err.Error(), "semel_migrations has version -1", name)
		}
	})
	t.Run("applies all of a migration or nothing", func(t *testing.T) {
		t.Parallel()
		h := newHandles(t)
		_, err := h.Write.Exec("CREATE TABLE semel_audit (mine INTEGER)")
		assert.NoError(t, err)
		err = sqlstore.Migrate(t.Context(), h)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.Contains(t, err.Error(), "0001_init.up, statement ")
		assert.Contains(t, err.Error(), "semel_audit already exists")
		var tables int
		assert.NoError(t, h.Read.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'semel_records'").Scan(&tables))
		assert.Equal(t, tables, 0, "tables of the migration that failed")
	})
}

func TestSQLiteProcessesMayCreateOneFileAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		path := filepath.Join(t.TempDir(), "semel.db")
		var children []*exec.Cmd
		var outputs []*strings.Builder
		for range 6 {
			cmd, out := command("sqlite-open", pathVariable+"="+path), new(strings.Builder)
			cmd.Stderr = out
			assert.NoError(t, cmd.Start())
			children, outputs = append(children, cmd), append(outputs, out)
		}
		for i, cmd := range children {
			assert.NoError(t, cmd.Wait(), "%s", outputs[i])
		}
		h, err := sqlstore.OpenSQLite("sqlite", path)
		assert.NoError(t, err)
		var migrations int
		assert.NoError(t, h.Read.QueryRow("SELECT count(*) FROM semel_migrations").Scan(&migrations))
		assert.Equal(t, migrations, 1, "migrations noted")
		assert.NoError(t, h.Close())
	}
}

func TestSQLiteWaitsForTheLockThatTheSwitchToWALNeeds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	other, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(4000)")
	assert.NoError(t, err)
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "CREATE TABLE t (a)")
	assert.NoError(t, err)

	tap, name := newTap(t)
	opened := make(chan error, 1)
	go func() {
		h, err := sqlstore.OpenSQLite(name, path)
		if err == nil {
			err = h.Close()
		}
		opened <- err
	}()
	assert.Eventually(t, "opening has tried twice", func() bool {
		tries := 0
		for _, query := range tap.statements() {
			if query == "PRAGMA journal_mode = WAL" {
				tries++
			}
		}
		return tries > 1
	})
	assert.NoError(t, tx.Commit())
	assert.NoError(t, <-opened)
}
