package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// migrateHere runs "semel migrate" and checks its exit code.
func migrateHere(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := runHere(t, append([]string{"migrate"}, args...)...)
	assert.Equal(t, code, want, "%v: %s%s", args, stdout, stderr)
	return stdout, stderr
}

func TestMigrationsGoUpAndDown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new.db")
	store := "--store=sqlite:" + path
	status := func() (v schemaView) {
		t.Helper()
		text, _ := migrateHere(t, exitDone, "status", store, "--json")
		assert.NoError(t, json.Unmarshal([]byte(text), &v))
		return v
	}
	_, stderr := migrateHere(t, exitFailed, "status", store)
	assert.Contains(t, stderr, "there is no file "+path)
	assert.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.Equal(t, status().Version, 0, "version of an empty file")
	stdout, _ := migrateHere(t, exitDone, "up", store, "--dry-run")
	assert.Equal(t, stdout, "would apply 0001_init\n")
	assert.Equal(t, status().Version, 0, "version after a dry run")
	stdout, _ = migrateHere(t, exitDone, "up", store)
	assert.Equal(t, stdout, "applied 0001_init\n")
	stdout, _ = migrateHere(t, exitDone, "up", store)
	assert.Contains(t, stdout, "nothing to apply")
	assert.Equal(t, status(), schemaView{Version: 1, Latest: 1, Applied: []string{"0001_init"}, Pending: []string{}})
	stdout, _ = migrateHere(t, exitDone, "status", store)
	assert.Equal(t, stdout, "version 1 of 1\napplied 0001_init\n")

	_, stderr = migrateHere(t, exitUsage, "down", store)
	assert.Contains(t, stderr, "nothing was changed: undoing 0001_init drops every key")
	stdout, _ = migrateHere(t, exitDone, "down", store, "--dry-run", "--yes-drop-all-records")
	assert.Equal(t, stdout, "would undo 0001_init\n")
	assert.Equal(t, status().Version, 1, "version after a refusal and a dry run")
	stdout, _ = migrateHere(t, exitDone, "down", store, "--yes-drop-all-records")
	assert.Equal(t, stdout, "undone 0001_init\n")
	stdout, _ = migrateHere(t, exitDone, "down", store, "--yes-drop-all-records")
	assert.Contains(t, stdout, "nothing to undo")
	assert.Equal(t, status(), schemaView{Latest: 1, Applied: []string{}, Pending: []string{"0001_init"}})
}

func TestAFileIsMadeByUpAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new.db")
	notMade := func(after string) {
		t.Helper()
		_, err := os.Stat(path)
		assert.ErrorIs(t, err, os.ErrNotExist, "after %s", after)
	}
	for _, args := range [][]string{{"status"}, {"down", "--yes-drop-all-records"}, {"down", "--dry-run"}} {
		migrateHere(t, exitFailed, append(args, "--store=sqlite:"+path)...)
		notMade(strings.Join(args, " "))
	}
	stdout, _ := migrateHere(t, exitDone, "up", "--dry-run", "--store=sqlite:"+path)
	assert.Equal(t, stdout, "would create "+path+"\nwould apply 0001_init\n")
	notMade("up --dry-run")
	nowhere := filepath.Join(filepath.Dir(path), "no folder", "new.db")
	for _, args := range [][]string{{"up"}, {"up", "--dry-run"}} {
		migrateHere(t, exitFailed, append(args, "--store=sqlite:"+nowhere)...)
	}
	migrateHere(t, exitDone, "up", "--store=sqlite:"+path)
	assert.Equal(t, (&keyStore{flag: "--store=sqlite:" + path}).keys(t, "list"), "no keys\n")
}

func TestWhatOnlyReadsDoesNotWaitForTheService(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "busy.db")
	store := "--store=sqlite:" + path
	migrateHere(t, exitDone, "up", store)
	h, err := sqlstore.OpenSQLite("sqlite", path)
	assert.NoError(t, err)
	defer h.Close()
	tx, err := h.Write.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	defer tx.Rollback()
	stdout, _ := migrateHere(t, exitDone, "up", store)
	assert.Contains(t, stdout, "nothing to apply")
	migrateHere(t, exitDone, "status", store)
	assert.Equal(t, (&keyStore{flag: store}).keys(t, "list"), "no keys\n")
}

// What is printed does what "up" and "down" do.
func TestPrintedSQLMakesADatabaseOfThisVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "printed.db")
	db, err := sql.Open("sqlite", "file:"+path)
	assert.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	up, _ := migrateHere(t, exitDone, "print", "--dialect=sqlite")
	_, err = db.Exec(up)
	assert.NoError(t, err)
	h, err := sqlstore.OpenSQLite("sqlite", path)
	assert.NoError(t, err)
	_, err = sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	assert.NoError(t, h.Close())
	stdout, _ := migrateHere(t, exitDone, "up", "--store=sqlite:"+path)
	assert.Contains(t, stdout, "nothing to apply")

	down, _ := migrateHere(t, exitDone, "print", "--dialect=sqlite", "--down")
	_, err = db.Exec(down)
	assert.NoError(t, err)
	stdout, _ = migrateHere(t, exitDone, "status", "--store=sqlite:"+path)
	assert.Equal(t, stdout, "version 0 of 1\npending 0001_init\n")
}

func TestPrintedSQLIsOneTransactionWhereThatIsPossible(t *testing.T) {
	t.Parallel()
	for dialect, whole := range map[string]bool{"sqlite": true, "postgres": true, "mariadb": false} {
		for _, direction := range []string{"--down=false", "--down"} {
			text, _ := migrateHere(t, exitDone, "print", "--dialect="+dialect, direction)
			assert.Equal(t, strings.HasPrefix(text, "BEGIN;\n"), whole, "%s begins", dialect)
			assert.Equal(t, strings.HasSuffix(text, "\nCOMMIT;\n"), whole, "%s commits", dialect)
			assert.Contains(t, text, "-- Notes for operators.")
			assert.True(t, !strings.Contains(text, "+goose"), "no marks of the files' format")
		}
	}
	_, stderr := migrateHere(t, exitUsage, "print")
	assert.Contains(t, stderr, `--dialect is ""; it must be one of mariadb, postgres, sqlite`)
	_, stderr = migrateHere(t, exitUsage, "nope")
	assert.Contains(t, stderr, `there is no command "nope" below "migrate"`)
}
