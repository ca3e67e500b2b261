package migrate

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Set is the series of migrations of one dialect.
type Set struct {
	files fs.FS
	dir   string

	// What databases say differently.
	now         string // the time, as text
	tableExists string // how many tables are called semel_migrations
	// lock keeps other migrations out, and answers 1 when it does; unlock lets
	// them in again where the lock is not the transaction's. Empty where BEGIN
	// does it.
	lock, unlock string
	// commitsEach says that each statement is a commit of its own.
	commitsEach bool
}

//go:embed sqlite/*.sql postgres/*.sql mariadb/*.sql
var files embed.FS

// SQLite returns the migrations for SQLite.
func SQLite() Set {
	return Set{
		files:       files,
		dir:         "sqlite",
		now:         "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
		tableExists: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'semel_migrations'",
	}
}

// PostgreSQL returns the migrations for PostgreSQL. The tables are made in the
// first schema of search_path.
func PostgreSQL() Set {
	return Set{
		files:       files,
		dir:         "postgres",
		now:         `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
		tableExists: "SELECT count(*) FROM pg_class WHERE oid = to_regclass('semel_migrations')",
		// Any number will do that no other program locks. Whoever waits for it
		// may have to wait for a long migration.
		lock: "SELECT count(*) FROM set_config('statement_timeout', '0', true), pg_advisory_xact_lock(495623828844)",
	}
}

// MariaDB returns the migrations for MariaDB. Each of their statements commits,
// and can be run again after a migration that was cut off.
func MariaDB() Set {
	return Set{
		files:       files,
		dir:         "mariadb",
		now:         "DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ')",
		tableExists: "SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = 'semel_migrations'",
		// The name is one for the server.
		lock:   "SELECT GET_LOCK(concat('semel:', md5(database())), 3600)",
		unlock: "SELECT RELEASE_LOCK(concat('semel:', md5(database())))",

		commitsEach: true,
	}
}

// migration is one step of the schema.
type migration struct {
	version int
	name    string // 0001_init
}

// Latest returns the version that the set leads to.
func (s Set) Latest() (int, error) {
	all, err := s.migrations()
	if err != nil {
		return 0, err
	}
	return all[len(all)-1].version, nil
}

// migrations lists the steps in order and checks that none is missing.
func (s Set) migrations() ([]migration, error) {
	names, err := fs.Glob(s.files, s.dir+"/*.up.sql")
	if err != nil {
		return nil, fmt.Errorf("migrate: list migrations: %w", err)
	}
	slices.Sort(names)
	all := make([]migration, 0, len(names))
	for i, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, s.dir+"/"), ".up.sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migrate: migration %s: its number must be %04d", file, i+1)
		}
		all = append(all, migration{version: version, name: name})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("migrate: no migrations in %s", s.dir)
	}
	return all, nil
}

// statements reads one file of a migration: "up" or "down".
func (s Set) statements(m migration, direction string) ([]string, error) {
	file := s.dir + "/" + m.name + "." + direction + ".sql"
	text, err := fs.ReadFile(s.files, file)
	if err != nil {
		return nil, fmt.Errorf("migrate: read migration: %w", err)
	}
	stmts, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("migrate: migration %s: %w", file, err)
	}
	return stmts, nil
}
