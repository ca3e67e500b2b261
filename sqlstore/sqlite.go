package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
	"github.com/semel-dev/semel/migrate"
)

// busyTimeout is how long SQLite waits for another writer. It is shorter than
// semel.DefaultStoreTimeout (R15).
const busyTimeout = 4 * time.Second

// sqlite is the dialect of SQLite 3.42 and later. Nothing is locked row by row:
// BEGIN IMMEDIATE has the whole file, and a transaction costs no round trip.
func sqlite() *dialect {
	const now = "CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) * 1000"
	return &dialect{
		example: `_ "modernc.org/sqlite", whose name is "sqlite"`,

		now:      now,
		asked:    now,
		limit:    busyTimeout,
		schema:   "SELECT 'main.'",
		maxReply: "SELECT 16 << 20",
		// It tests expiry again for the row it deletes, and not only for the
		// list that it works from.
		sweep: `DELETE FROM semel_records WHERE id IN (
	SELECT id FROM semel_records WHERE expires <= {asked} + ? AND generation = 0 ORDER BY expires LIMIT ?)
AND expires <= {asked} + ?`,
		opened:     func(time.Duration) string { return "SAVEPOINT " + savepointName },
		release:    "RELEASE SAVEPOINT " + savepointName,
		migrations: migrate.SQLite(),
		text:       &sqltext.SQLite,
		errors: faults{
			again:   never,
			refused: isUndone,
			// The connection knows whether its transaction was rolled back.
			ended: func(err error) bool { return !isUndone(err) },
			// Rows of a statement that writes are not closed.
			stays: isBusy,
		},
	}
}

// minReaders is how many readers there are on the smallest machine.
const minReaders = 4

var setBusyTimeout = fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds())

// sqlitePragmas is what every connection is told. The timeout comes first,
// because the others may have to wait.
var sqlitePragmas = []string{
	setBusyTimeout,
	"PRAGMA foreign_keys = ON",
	"PRAGMA synchronous = FULL",
}

// OpenSQLite opens the SQLite database at path with the driver that is
// registered as driverName. The path is a file name, and not a URI with
// settings; the file is created if it is missing, for its owner only. Every
// connection is set to journal_mode=WAL, synchronous=FULL, busy_timeout and
// foreign_keys by statements, so that any driver will do. With one whose errors
// have no Code() int, a COMMIT that a deferred constraint refused is not known
// to be undone (semel.ErrCommitRefused).
//
// A database in memory is refused: it has as many contents as connections.
//
// Errors match semel.ErrConfig for a path that cannot be used, else
// semel.ErrStoreUnavailable.
func OpenSQLite(driverName, path string) (*Handles, error) {
	d := sqlite()
	drv, err := registered(driverName, d.example)
	if err != nil {
		return nil, err
	}
	dsn, err := sqliteDSN(path)
	if err != nil {
		return nil, err
	}
	h := &Handles{
		Write: sql.OpenDB(&connector{driver: drv, dsn: dsn, writes: true}),
		Read:  sql.OpenDB(&connector{driver: drv, dsn: dsn}),

		dialect: d,
	}
	h.own, h.ownRead = h.Write, h.Read
	h.ownTurns = make(turns, 1)
	h.writeTurns = h.ownTurns
	h.Write.SetMaxOpenConns(1)
	readers := max(minReaders, runtime.GOMAXPROCS(0))
	h.Read.SetMaxOpenConns(readers)
	h.Read.SetMaxIdleConns(readers)
	if err := h.try(); err != nil {
		h.Close() //nolint:errcheck // the first error is the one that matters.
		return nil, unavailable(fmt.Errorf("open %s: %w", path, err))
	}
	return h, nil
}

// try connects, so that what cannot be used is found now and not by the first
// request.
func (h *Handles) try() error {
	if err := h.Write.PingContext(context.Background()); err != nil {
		return err
	}
	return h.Read.PingContext(context.Background())
}

// registered returns the driver of that name. sql.Open is the only way to ask
// for it, and connects to nothing.
func registered(driverName, example string) (driver.Driver, error) {
	db, err := sql.Open(driverName, "")
	if err != nil {
		names := cmp.Or(strings.Join(sql.Drivers(), ", "), "none")
		return nil, semel.NewError(semel.CodeConfig, err, "sqlstore: there is no driver %q; registered drivers: %s; import it in your program, as in import %s", driverName, names, example)
	}
	defer db.Close()
	return db.Driver(), nil
}

// sqliteDSN checks path and returns it as a URI, in which no character of a
// file name means anything else.
func sqliteDSN(path string) (string, error) {
	if path == "" || path == ":memory:" {
		return "", configError("path is %q; it must name a file", path)
	}
	if strings.HasPrefix(path, "file:") || strings.Contains(path, "?") {
		return "", configError("path is %q; it must be the name of a file, not a URI, with no settings after a question mark: OpenSQLite makes them", path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", semel.NewError(semel.CodeConfig, err, "sqlstore: path %q", path)
	}
	if err := makeFile(full); err != nil {
		return "", semel.NewError(semel.CodeConfig, err, "sqlstore: the database file cannot be used")
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(full)}
	return uri.String(), nil
}

// makeFile creates the file if it is missing. A file that exists is not
// opened: closing it would drop the locks that this process's other
// connections hold on it (POSIX fcntl).
func makeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, err := os.Readlink(path); err == nil {
			return makeFile(linked(path, target))
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil // another process was faster
		}
		if err != nil {
			return err
		}
		return f.Close()
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// linked returns what the link at path means with target. The path is not
// cleaned: the folder before a ".." may be a link too.
func linked(path, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	dir, _ := filepath.Split(path)
	return dir + target
}

// connector opens and sets up the connections of one handle.
type connector struct {
	driver driver.Driver
	dsn    string
	writes bool
}

var _ driver.Connector = (*connector)(nil)

// Driver returns the driver that was registered.
func (c *connector) Driver() driver.Driver { return c.driver }

// Connect opens one connection. An error says which setting was refused.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	if err := c.setUp(ctx, conn); err != nil {
		conn.Close() //nolint:errcheck // the first error is the one that matters.
		return nil, err
	}
	if c.writes {
		return newWriteConn(conn), nil
	}
	return conn, nil
}

func (c *connector) setUp(ctx context.Context, conn driver.Conn) error {
	for _, pragma := range sqlitePragmas {
		if _, err := run(ctx, conn, pragma); err != nil {
			return fmt.Errorf("%s: %w", pragma, err)
		}
	}
	if err := useWAL(ctx, conn); err != nil {
		return err
	}
	if c.writes {
		return mayWrite(ctx, conn)
	}
	_, err := run(ctx, conn, "PRAGMA query_only = ON")
	return err
}

// mayWrite is an error if the file cannot be written. It does not wait for the
// write lock, which others may take again and again before a newcomer has it:
// SQLite first looks whether it may write at all, so that whoever is told that
// another does so may too.
func mayWrite(ctx context.Context, conn driver.Conn) error {
	if _, err := run(ctx, conn, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	_, err := run(ctx, conn, "BEGIN IMMEDIATE")
	if err == nil {
		_, err = run(ctx, conn, "ROLLBACK")
	}
	if err != nil && !isBusy(err) {
		return err
	}
	_, err = run(ctx, conn, setBusyTimeout)
	return err
}

// useWAL switches the file to a write-ahead log, which it then stays in.
// SQLite does not wait for the lock that the switch needs, so two processes
// that make the file at once have to.
func useWAL(ctx context.Context, conn driver.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for {
		mode, err := run(ctx, conn, "PRAGMA journal_mode = WAL")
		if err == nil && isText(mode, "wal") {
			return nil
		}
		if err == nil {
			return fmt.Errorf("PRAGMA journal_mode = WAL: SQLite answers %s: a write-ahead log needs a local disk", mode)
		}
		if _, readErr := run(ctx, conn, "PRAGMA journal_mode"); readErr != nil || ctx.Err() != nil {
			return fmt.Errorf("PRAGMA journal_mode = WAL: %w", err)
		}
		time.Sleep(walPause)
	}
}

const walPause = 5 * time.Millisecond

// isText compares a value of a driver, which may give text as bytes.
func isText(v driver.Value, want string) bool {
	switch v := v.(type) {
	case string:
		return v == want
	case []byte:
		return string(v) == want
	}
	return false
}

// run executes one statement and returns the first value of its first row, if
// it has one. It is the one way that all drivers offer.
func run(ctx context.Context, conn driver.Conn, statement string) (driver.Value, error) {
	stmt, err := prepare(ctx, conn, statement)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	var rows driver.Rows
	if q, ok := stmt.(driver.StmtQueryContext); ok {
		rows, err = q.QueryContext(ctx, nil)
	} else {
		rows, err = stmt.Query(nil) //nolint:staticcheck // for a driver that has only this.
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var first driver.Value
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(values) > 0 {
		first = values[0]
	}
	return first, nil
}

func prepare(ctx context.Context, conn driver.Conn, statement string) (driver.Stmt, error) {
	if p, ok := conn.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, statement)
	}
	return conn.Prepare(statement)
}
