package integration

import (
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

func TestSQLiteSetsEveryConnectionUp(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	readers := s.handles.Read.Stats().MaxOpenConnections
	for _, c := range []struct {
		name  string
		db    *sql.DB
		conns int
		want  map[string]string
	}{
		{"the writer", s.handles.Write, 1, map[string]string{
			"journal_mode": "wal", "synchronous": "2", "busy_timeout": "4000", "foreign_keys": "1", "query_only": "0",
		}},
		{"each reader", s.handles.Read, readers, map[string]string{
			"journal_mode": "wal", "synchronous": "2", "busy_timeout": "4000", "foreign_keys": "1", "query_only": "1",
		}},
	} {
		for range c.conns {
			// A connection that is held makes the pool open the next.
			conn, err := c.db.Conn(t.Context())
			assert.NoError(t, err)
			defer conn.Close()
			for pragma, want := range c.want {
				var got string
				assert.NoError(t, conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
				assert.Equal(t, got, want, "%s of %s", pragma, c.name)
			}
		}
	}
	assert.True(t, readers > 1, "there is more than one reader")
}

func TestSQLiteNeedsNothingOfItsDriverThatNotEveryDriverHas(t *testing.T) {
	t.Parallel()
	_, name := newTap(t)
	s := newSQLiteOn(t, name)
	res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), payOnce)
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	assert.Equal(t, s.payments(t), 1)
}

func TestSQLiteReadersCannotWrite(t *testing.T) {
	t.Parallel()
	_, err := newSQLite(t).handles.Read.Exec("DELETE FROM semel_records")
	assert.True(t, err != nil, "a write on Handles.Read fails")
}

func TestSQLiteTransactionsHaveTheWriteLockFromTheStart(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	tx, err := s.handles.Write.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	other, err := sql.Open("sqlite", s.path)
	assert.NoError(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), insertPayment, "k")
	assert.True(t, err != nil, "another writer is refused while the transaction has written nothing yet")
	assert.NoError(t, tx.Rollback())

	_, err = s.handles.Write.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	assert.True(t, err != nil, "a read-only transaction is refused")
}

func TestSQLiteOpensBesideAWriterThatNeverLetsGo(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	defer stall(t, s)()
	other, err := openSQLite(t.Context(), "sqlite", s.path)
	assert.NoError(t, err, "open, migrate and use a store, with a table of the program's own")
	_, err = other.Get(t.Context(), "payments:c_1", "k")
	assert.NoError(t, err)
	assert.NoError(t, other.handles.Close())
}

func TestSQLiteIsMigratedWhereAnotherWasFasterAndWritesEverSince(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	first, err := sqlstore.OpenSQLite("sqlite", path)
	assert.NoError(t, err)
	defer first.Close()
	d, name := newTap(t)
	second, err := sqlstore.OpenSQLite(name, path)
	assert.NoError(t, err)
	defer second.Close()
	d.fail(func(query string) error {
		if query != "BEGIN IMMEDIATE" {
			return nil
		}
		assert.NoError(t, sqlstore.Migrate(t.Context(), first))
		return coded(5) // SQLITE_BUSY
	}, nil)
	assert.NoError(t, sqlstore.Migrate(t.Context(), second))
}

func TestSQLiteTakesAnyFileName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b.db", "h#ash", "100%25.db", "file:x", "é.db"} {
		path := filepath.Join(t.TempDir(), name)
		s, err := openSQLite(t.Context(), "sqlite", path)
		assert.NoError(t, err, "open %q", name)
		assert.NoError(t, s.handles.Close())
		info, err := os.Stat(path)
		assert.NoError(t, err)
		assert.True(t, info.Size() > 0, "the database is in the file %q", name)
		assert.Equal(t, info.Mode().Perm(), os.FileMode(0o600), "who may read it")
	}
}

func TestSQLiteMakesTheFileBehindALinkForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	assert.NoError(t, os.Mkdir(data, 0o700))
	for name, target := range map[string]string{
		"a relative link": "data/relative.db",
		"an absolute one": filepath.Join(data, "absolute.db"),
		"a link to one":   "a relative link to be",
	} {
		link := filepath.Join(dir, name)
		assert.NoError(t, os.Symlink(target, link))
		if name == "a link to one" {
			assert.NoError(t, os.Symlink("data/../data/second.db", filepath.Join(dir, target)))
		}
		s, err := openSQLite(t.Context(), "sqlite", link)
		assert.NoError(t, err, name)
		assert.NoError(t, s.handles.Close())
		info, err := os.Stat(link)
		assert.NoError(t, err)
		assert.Equal(t, info.Mode().Perm(), os.FileMode(0o600), name)
	}
}

func TestSQLiteSaysWhatIsWrongWithAPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	assert.NoError(t, os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600))
	for _, c := range []struct {
		name, driver, path string
		code               *semel.Error
		says               string
	}{
		{"no path", "sqlite", "", semel.ErrConfig, "must name a file"},
		{"memory", "sqlite", ":memory:", semel.ErrConfig, "must name a file"},
		{"a URI", "sqlite", "file:x.db", semel.ErrConfig, "not a URI"},
		{"settings", "sqlite", filepath.Join(dir, "x.db?mode=memory"), semel.ErrConfig, "no settings"},
		{"a URI with settings", "sqlite", "file:x.db?mode=memory", semel.ErrConfig, "not a URI"},
		{"a directory", "sqlite", dir, semel.ErrConfig, "not a regular file"},
		{"in a directory that is not there", "sqlite", filepath.Join(dir, "no", "x.db"), semel.ErrConfig, "no such file or directory"},
		{"under a file", "sqlite", filepath.Join(text, "x.db"), semel.ErrConfig, "not a directory"},
		{"a file of something else", "sqlite", text, semel.ErrStoreUnavailable, "not a database"},
		{"a driver that is not there", "nosuch", filepath.Join(dir, "x.db"), semel.ErrConfig, `there is no driver "nosuch"; registered drivers: ` + strings.Join(sql.Drivers()[:1], "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := sqlstore.OpenSQLite(c.driver, c.path)
			assert.ErrorIs(t, err, c.code)
			assert.Contains(t, err.Error(), c.says)
			if c.driver == "sqlite" {
				assert.Contains(t, err.Error(), c.path, "the path is named")
			}
		})
	}
}

// TestSQLiteSaysThatAFileIsReadOnly runs in a process of another user, since
// nothing is read-only to root.
func TestSQLiteSaysThatAFileIsReadOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Getuid() != 0 {
		assert.Skip(t, "only root can start a process of another user")
	}
	dir, err := os.MkdirTemp("", "semel") //nolint:usetesting // the parent of t.TempDir is closed to other users.
	assert.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "semel.db")
	s, err := openSQLite(t.Context(), "sqlite", path)
	assert.NoError(t, err)
	assert.NoError(t, s.handles.Close())
	for name, mode := range map[string]os.FileMode{dir: 0o755, path: 0o644, path + ".clock": 0o644} {
		assert.NoError(t, os.Chmod(name, mode))
	}

	for _, c := range []struct{ name, file, says string }{
		{"a file", path, "readonly"},
		{"a directory", filepath.Join(dir, "new.db"), "permission denied"},
	} {
		cmd := command("sqlite-open", pathVariable+"="+c.file)
		cmd.Path = copyProgram(t, dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		assert.True(t, err != nil, "opening %s that is read-only fails", c.name)
		assert.Contains(t, string(out), c.says, "opening %s that is read-only", c.name)
		assert.Contains(t, string(out), c.file, "the path is named")
	}
}

// copyProgram puts this program where other users may execute it.
func copyProgram(t *testing.T, dir string) string {
	t.Helper()
	from, err := os.Open(os.Args[0])
	assert.NoError(t, err)
	defer from.Close()
	path := filepath.Join(dir, "program")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755) //nolint:gosec // others are to execute it.
	assert.NoError(t, err)
	_, err = io.Copy(to, from)
	assert.NoError(t, err)
	assert.NoError(t, to.Close())
	return path
}

// sqliteOpen opens, migrates and closes a store.
func sqliteOpen() error {
	h, err := sqlstore.OpenSQLite("sqlite", os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	defer h.Close()
	if err := sqlstore.Migrate(context.Background(), h); err != nil {
		return err
	}
	_, err = sqlstore.New(context.Background(), h, sqlstore.Config{})
	return err
}
