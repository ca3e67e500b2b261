//go:build unix

package services

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// pgbouncerSettings are those of transaction pooling. What is not said is left
// as it is delivered: a startup parameter that PgBouncer does not know is
// refused, and a pool has twenty connections. It tries a server that did not
// answer again after a second: its default of fifteen would be all that a test
// of a restart waits for.
const pgbouncerSettings = `[databases]
* = host=%s port=%d user=%s
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 400
server_login_retry = 1
`

// PgBouncer is a PgBouncer with transaction pooling before a PostgreSQL.
type PgBouncer struct {
	Server

	postgres *Postgres
}

// StartPgBouncer starts a new instance before p. The error is a *MissingError
// where PgBouncer is not installed.
func StartPgBouncer(p *Postgres) (*PgBouncer, error) {
	program, err := find("pgbouncer")
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{postgres: p}
	b.Server = Server{
		name:  "pgbouncer",
		ready: "process up",
		end:   syscall.SIGKILL, endName: "KILL",
		argv: func() ([]string, error) {
			ini := filepath.Join(b.folder, "ini")
			settings := fmt.Sprintf(pgbouncerSettings, host, p.port, postgresUser, host, b.port)
			return []string{program, ini}, os.WriteFile(ini, []byte(settings), 0o644) //nolint:gosec // its user reads it
		},
	}
	return b, b.launch()
}

// URL returns the URL, through b, of the database that every instance of
// PostgreSQL has.
func (b *PgBouncer) URL() string { return b.through(b.postgres.URL()) }

// NewDatabase makes an empty database in the PostgreSQL and returns its URL
// through b.
func (b *PgBouncer) NewDatabase(t testing.TB) string {
	t.Helper()
	return b.through(b.postgres.NewDatabase(t))
}

func (b *PgBouncer) through(url string) string {
	return strings.Replace(url, b.postgres.Addr(), b.Addr(), 1)
}
