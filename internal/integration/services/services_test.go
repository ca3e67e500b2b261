//go:build unix

package services_test

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

// server is what all servers are.
type server interface {
	Addr() string
	Kill()
	Start() error
	Restart() error
}

// counter counts in a server.
type counter interface {
	add(t *testing.T)
	count(t *testing.T) string
}

// kinds are the servers, each with a counter in it.
var kinds = map[string]func(t *testing.T) (server, counter){
	"PostgreSQL": func(t *testing.T) (server, counter) {
		p := services.NewPostgres(t)
		return p, &sqlCounter{"pgx", p.NewDatabase(t)}
	},
	"PgBouncer": func(t *testing.T) (server, counter) {
		b := services.NewPgBouncer(t, services.SharedPostgres(t))
		return b, &sqlCounter{"pgx", b.NewDatabase(t) + "&default_query_exec_mode=simple_protocol"}
	},
	"MariaDB": func(t *testing.T) (server, counter) {
		m := services.NewMariaDB(t)
		return m, &sqlCounter{"mysql", m.NewDatabase(t)}
	},
	"Redis": func(t *testing.T) (server, counter) {
		r := services.NewRedis(t)
		return r, &redisCounter{r}
	},
}

func TestServers(t *testing.T) {
	t.Parallel()
	for name, start := range kinds {
		t.Run(name+" keeps what it acknowledged before it was killed", func(t *testing.T) {
			t.Parallel()
			s, c := start(t)
			for _, want := range []string{"1", "2", "3"} {
				c.add(t)
				s.Kill()
				assert.True(t, !listens(t, s.Addr()), "a killed server listens")
				assert.NoError(t, s.Start())
				assert.Equal(t, c.count(t), want)
			}
			assert.NoError(t, s.Restart())
			assert.Equal(t, c.count(t), "3")
		})
		t.Run(name+" says that its port is taken", func(t *testing.T) {
			t.Parallel()
			s, c := start(t)
			s.Kill()
			var config net.ListenConfig
			l, err := config.Listen(t.Context(), "tcp", s.Addr())
			assert.NoError(t, err)
			err = s.Start()
			l.Close()
			assert.True(t, services.PortTaken(err), "port taken: %v", err)
			assert.NoError(t, s.Start())
			c.add(t)
			assert.Equal(t, c.count(t), "1")
		})
	}
}

func TestPostgresRecoversFromAnImmediateStop(t *testing.T) {
	t.Parallel()
	p := services.NewPostgres(t)
	c := &sqlCounter{"pgx", p.NewDatabase(t)}
	c.add(t)
	p.StopImmediate()
	assert.True(t, !listens(t, p.Addr()), "a stopped server listens")
	assert.NoError(t, p.Start())
	assert.Equal(t, c.count(t), "1")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	t.Run("a commit of PostgreSQL is on the disk", func(t *testing.T) {
		t.Parallel()
		db := open(t, "pgx", services.SharedPostgres(t).URL())
		for name, want := range map[string]string{
			"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "max_connections": "400",
		} {
			assert.Equal(t, value(t, db, "SHOW "+name), want, name)
		}
	})
	t.Run("PgBouncer pools by transaction", func(t *testing.T) {
		t.Parallel()
		b := services.SharedPgBouncer(t)
		db := open(t, "pgx", b.NewDatabase(t)+"&default_query_exec_mode=simple_protocol")
		db.SetMaxOpenConns(2)
		one, err := db.Conn(t.Context())
		assert.NoError(t, err)
		two, err := db.Conn(t.Context())
		assert.NoError(t, err)
		const session = "SELECT pg_backend_pid()"
		assert.Equal(t, value(t, one, session), value(t, two, session), "the server's session of two clients, one after the other")
		assert.NoError(t, one.Close())
		assert.NoError(t, two.Close())
	})
	t.Run("a commit of MariaDB is on the disk", func(t *testing.T) {
		t.Parallel()
		db := open(t, "mysql", services.SharedMariaDB(t).DSN())
		for name, want := range map[string]string{
			"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "1", "log_bin": "0", "max_connections": "400",
		} {
			assert.Equal(t, value(t, db, "SELECT @@"+name), want, name)
		}
	})
	t.Run("a write of Redis is on the disk, and none is evicted", func(t *testing.T) {
		t.Parallel()
		r := services.SharedRedis(t)
		for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"} {
			said, err := r.Do("CONFIG", "GET", name)
			assert.NoError(t, err)
			assert.Equal(t, said, name+"\n"+want)
		}
	})
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	p, m, r := services.SharedPostgres(t), services.SharedMariaDB(t), services.SharedRedis(t)
	for name, c := range map[string][2]string{
		"PostgreSQL": {p.NewDatabase(t), p.NewDatabase(t)},
		"MariaDB":    {m.NewDatabase(t), m.NewDatabase(t)},
		"Redis":      {r.NewDatabase(t), r.NewDatabase(t)},
	} {
		assert.True(t, c[0] != c[1], "%s: got %s twice", name, c[0])
	}
	assert.True(t, p == services.SharedPostgres(t), "one process got two shared servers")
}

func TestADatabaseIsDroppedWithItsTest(t *testing.T) { //nolint:tparallel // the subtest's end is waited for
	t.Parallel()
	p := services.SharedPostgres(t)
	var url string
	t.Run("in use as it may be", func(t *testing.T) {
		url = p.NewDatabase(t)
		c, err := open(t, "pgx", url).Conn(t.Context())
		assert.NoError(t, err)
		assert.NoError(t, c.PingContext(t.Context()))
	})
	err := open(t, "pgx", url).PingContext(t.Context())
	assert.True(t, err != nil && strings.Contains(err.Error(), "does not exist"), "got %v, want no such database", err)
}

type sqlCounter struct{ driver, url string }

func (c *sqlCounter) add(t *testing.T) {
	t.Helper()
	db := open(t, c.driver, c.url)
	for _, statement := range []string{"CREATE TABLE IF NOT EXISTS added (one INT)", "INSERT INTO added VALUES (1)"} {
		_, err := db.ExecContext(t.Context(), statement)
		assert.NoError(t, err)
	}
}

func (c *sqlCounter) count(t *testing.T) string {
	t.Helper()
	return value(t, open(t, c.driver, c.url), "SELECT COUNT(*) FROM added")
}

type redisCounter struct{ redis *services.Redis }

func (c *redisCounter) add(t *testing.T) {
	t.Helper()
	_, err := c.redis.Do("INCR", "added")
	assert.NoError(t, err)
}

func (c *redisCounter) count(t *testing.T) string {
	t.Helper()
	n, err := c.redis.Do("GET", "added")
	assert.NoError(t, err)
	return n
}

func open(t *testing.T, driver, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, url)
	assert.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// value returns the one value that a query has.
func value(t *testing.T, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, query string,
) string {
	t.Helper()
	var v string
	assert.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&v), query)
	return v
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
