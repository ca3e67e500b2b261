//go:build unix

package services

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
)

// postgresUser is the superuser of the tests' instances.
const postgresUser = "semel"

// postgresSettings are durable: a commit is on the disk when it is
// acknowledged. The connections are those of four processes with 64 each, and
// of the tests beside them. Without sockets a long temporary folder does no
// harm, and with dynamic memory in the data a killed server leaves none.
var postgresSettings = []string{
	"listen_addresses=" + host,
	"unix_socket_directories=",
	"fsync=on",
	"full_page_writes=on",
	"synchronous_commit=on",
	"max_connections=400",
	"dynamic_shared_memory_type=mmap",
	"timezone=UTC",
}

// Postgres is an instance of PostgreSQL.
type Postgres struct {
	Server

	createdb  string
	dropdb    string
	databases atomic.Int64
}

// StartPostgres starts a new instance. The error is a *MissingError where
// PostgreSQL is not installed.
func StartPostgres() (*Postgres, error) {
	paths := make(map[string]string)
	for _, program := range []string{"postgres", "initdb", "createdb", "dropdb"} {
		path, err := findPostgres(program)
		if err != nil {
			return nil, err
		}
		paths[program] = path
	}
	p := &Postgres{createdb: paths["createdb"], dropdb: paths["dropdb"]}
	p.Server = Server{
		name:  "postgres",
		ready: "database system is ready to accept connections",
		held:  "shared memory block",
		end:   syscall.SIGQUIT, endName: "QUIT",
		prepare: func() error {
			_, err := run(p.folder, paths["initdb"], "-D", filepath.Join(p.folder, "data"), "-U", postgresUser,
				"--auth=trust", "--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8")
			return err
		},
		argv: func() ([]string, error) {
			argv := []string{paths["postgres"], "-D", "data", "-p", strconv.Itoa(p.port)}
			for _, setting := range postgresSettings {
				argv = append(argv, "-c", setting)
			}
			return argv, nil
		},
	}
	return p, p.launch()
}

// URL returns the URL of the database that every instance has. Tests of the
// server itself use it; others want NewDatabase.
func (p *Postgres) URL() string { return postgresURL(p.Addr(), "postgres") }

// NewDatabase makes an empty database and returns its URL. It is dropped at the
// test's end: PostgreSQL tends each one it has, and each takes some megabytes.
func (p *Postgres) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", p.databases.Add(1))
	if _, err := p.client(p.createdb, name); err != nil {
		t.Fatalf("make a database in PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		p.client(p.dropdb, "--force", name) //nolint:errcheck // a test may leave the server down
	})
	return postgresURL(p.Addr(), name)
}

func (p *Postgres) client(program string, args ...string) (string, error) {
	return run(p.folder, append([]string{program, "-h", host, "-p", strconv.Itoa(p.port), "-U", postgresUser}, args...)...)
}

// StopImmediate ends the server as "pg_ctl stop -m immediate" does: its
// sessions end at once, and the next Start recovers. It returns when it has
// ended.
func (p *Postgres) StopImmediate() { p.stop(syscall.SIGQUIT) }

func postgresURL(address, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgresUser, address, database)
}
