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

// MariaDB is an instance of MariaDB.
type MariaDB struct {
	Server

	admin     string
	databases atomic.Int64
}

// StartMariaDB starts a new instance. The error is a *MissingError where
// MariaDB is not installed.
func StartMariaDB() (*MariaDB, error) {
	paths := make(map[string]string)
	for _, program := range []string{"mariadbd", "mariadb-install-db", "mariadb-admin"} {
		path, err := find(program)
		if err != nil {
			return nil, err
		}
		paths[program] = path
	}
	m := &MariaDB{admin: paths["mariadb-admin"]}
	m.Server = Server{
		name:  "mariadb",
		ready: "ready for connections",
		end:   syscall.SIGKILL, endName: "KILL",
		prepare: func() error {
			_, err := run(m.folder, paths["mariadb-install-db"], "--no-defaults", "--datadir="+filepath.Join(m.folder, "data"),
				"--auth-root-authentication-method=normal", "--skip-test-db")
			return err
		},
		argv: func() ([]string, error) {
			return []string{
				paths["mariadbd"], "--no-defaults",
				"--datadir=" + filepath.Join(m.folder, "data"),
				"--tmpdir=" + m.folder,
				"--bind-address=" + host,
				"--port=" + strconv.Itoa(m.port),
				"--socket=sock", // in the data, so that a long temporary folder does no harm
				"--pid-file=pid",
				"--skip-name-resolve",
				// A commit is on the disk when it is acknowledged.
				"--innodb-flush-log-at-trx-commit=1",
				"--innodb-doublewrite=1",
				"--skip-log-bin",
				// Four processes with 64 each, and the tests beside them.
				"--max-connections=400",
			}, nil
		},
	}
	return m, m.launch()
}

// DSN returns the data source name of the server, without a database, as
// go-sql-driver/mysql takes it. Tests of the server itself use it; others want
// NewDatabase.
func (m *MariaDB) DSN() string { return m.dsn("") }

// NewDatabase makes an empty database and returns its data source name. It is
// there until the server's end.
func (m *MariaDB) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", m.databases.Add(1))
	if _, err := run(m.folder, m.admin, "--no-defaults", "--protocol=tcp", "-h", host, "-P", strconv.Itoa(m.port), "-u", "root", "create", name); err != nil {
		t.Fatalf("make a database in MariaDB: %v", err)
	}
	return m.dsn(name)
}

func (m *MariaDB) dsn(database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", m.Addr(), database)
}
