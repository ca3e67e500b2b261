package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const createTable = `CREATE TABLE IF NOT EXISTS semel_migrations (
	version    INTEGER NOT NULL PRIMARY KEY,
	name       TEXT NOT NULL,
	applied_at TEXT NOT NULL
)`

// A version is a number and a name the name of a file of ours, so that they
// need no placeholders, which databases write differently.
const (
	selectVersion = `SELECT coalesce(max(version), 0) FROM semel_migrations`
	insertVersion = `INSERT INTO semel_migrations (version, name, applied_at) VALUES (%d, '%s', %s)`
	deleteVersion = `DELETE FROM semel_migrations WHERE version = %d`
)

// ErrNewer means that the database was migrated by a later version of Semel.
var ErrNewer = errors.New("migrate: the database has a newer schema than this program knows; use a newer program")

// Up applies what is missing and returns the names of what it applied, in
// order. It runs in one transaction, all of which takes effect or nothing;
// MariaDB commits each statement, and Up goes on where an earlier one was cut
// off. Other migrations are locked out meanwhile; with SQLite the BEGIN of db
// must do so, as that of sqlstore's Handles.Write does. That keeps all other
// writers out as well, and may have to wait for them longer than SQLite does: an
// SQLite database that lacks nothing is only read.
func Up(ctx context.Context, db *sql.DB, s Set) ([]string, error) {
	if s.lock != "" {
		return s.up(ctx, db)
	}
	complete := func() bool {
		pending, err := Pending(ctx, db, s)
		return err == nil && len(pending) == 0
	}
	if complete() {
		return nil, nil
	}
	applied, err := s.up(ctx, db)
	if err != nil && complete() { // another process was faster, and has kept the lock since
		return nil, nil
	}
	return applied, err
}

func (s Set) up(ctx context.Context, db *sql.DB) ([]string, error) {
	all, err := s.migrations()
	if err != nil {
		return nil, err
	}
	var applied []string
	err = s.inTx(ctx, db, func(tx *sql.Tx, version int) error {
		if version > len(all) {
			return ErrNewer
		}
		for _, m := range all[version:] {
			if err := s.applyTx(ctx, tx, m, "up"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, fmt.Sprintf(insertVersion, m.version, m.name, s.now)); err != nil {
				return fmt.Errorf("migrate: note migration %s: %w", m.name, err)
			}
			applied = append(applied, m.name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// Down undoes the latest migration and returns its name, or nothing if there
// is none. It loses what that migration's tables hold.
func Down(ctx context.Context, db *sql.DB, s Set) (string, error) {
	all, err := s.migrations()
	if err != nil {
		return "", err
	}
	var undone string
	err = s.inTx(ctx, db, func(tx *sql.Tx, version int) error {
		switch {
		case version > len(all):
			return ErrNewer
		case version == 0:
			return nil
		}
		m := all[version-1]
		if err := s.applyTx(ctx, tx, m, "down"); err != nil {
			return err
		}
		undone = m.name
		_, err := tx.ExecContext(ctx, fmt.Sprintf(deleteVersion, m.version))
		return err
	})
	if err != nil {
		return "", err
	}
	return undone, nil
}

// Version returns the schema version of the database: 0 where Semel has no
// tables yet.
func Version(ctx context.Context, db *sql.DB, s Set) (int, error) {
	var tables int
	if err := db.QueryRowContext(ctx, s.tableExists).Scan(&tables); err != nil {
		return 0, fmt.Errorf("migrate: look for semel_migrations: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	return readVersion(ctx, db)
}

// queryer is a *sql.DB or a *sql.Tx.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readVersion(ctx context.Context, q queryer) (int, error) {
	var version int
	if err := q.QueryRowContext(ctx, selectVersion).Scan(&version); err != nil {
		return 0, fmt.Errorf("migrate: read semel_migrations: %w", err)
	}
	if version < 0 {
		return 0, fmt.Errorf("migrate: semel_migrations has version %d, which no migration writes: restore the table, or delete the row if Semel has no tables yet", version)
	}
	return version, nil
}

// inTx calls change with the present version and commits what it did.
func (s Set) inTx(ctx context.Context, db *sql.DB, change func(*sql.Tx, int) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: connect: %w", err)
	}
	defer conn.Close()
	if s.unlock != "" {
		// A connection that ends takes its lock with it.
		defer conn.ExecContext(context.WithoutCancel(ctx), s.unlock) //nolint:errcheck // see above.
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrate: begin a migration: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
	if s.lock != "" {
		var locked sql.NullInt64
		if err := tx.QueryRowContext(ctx, s.lock).Scan(&locked); err != nil {
			return fmt.Errorf("migrate: wait for other migrations: %w", err)
		}
		if locked.Int64 != 1 {
			return errors.New("migrate: another migration is at work; wait for its end")
		}
	}
	if _, err := tx.ExecContext(ctx, createTable); err != nil {
		return fmt.Errorf("migrate: create semel_migrations: %w", err)
	}
	version, err := readVersion(ctx, tx)
	if err != nil {
		return err
	}
	if err := change(tx, version); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("migrate: commit a migration: %w", err)
	}
	return nil
}

// applyTx runs one file. An error names the statement, so that an operator
// can tell what of it the database did not like.
func (s Set) applyTx(ctx context.Context, tx *sql.Tx, m migration, direction string) error {
	stmts, err := s.statements(m, direction)
	if err != nil {
		return err
	}
	for i, stmt := range stmts {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("migrate: migration %s.%s, statement %d of %d: %w", m.name, direction, i+1, len(stmts), err)
		}
	}
	return nil
}
