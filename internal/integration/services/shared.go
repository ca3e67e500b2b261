//go:build unix

package services

import (
	"errors"
	"sync"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// The instances that the tests of a process share.
var (
	onePostgres = sync.OnceValues(StartPostgres)
	oneMariaDB  = sync.OnceValues(StartMariaDB)
	oneRedis    = sync.OnceValues(StartRedis)
	oneCluster  = sync.OnceValues(StartRedisCluster)

	onePgBouncer = sync.OnceValues(func() (*PgBouncer, error) {
		p, err := onePostgres()
		if err != nil {
			return nil, err
		}
		return StartPgBouncer(p)
	})
)

// SharedPostgres returns the PostgreSQL of this process, for tests that leave
// it running.
func SharedPostgres(t testing.TB) *Postgres { t.Helper(); return shared(t, onePostgres) }

// SharedMariaDB returns the MariaDB of this process, for tests that leave it
// running.
func SharedMariaDB(t testing.TB) *MariaDB { t.Helper(); return shared(t, oneMariaDB) }

// SharedRedis returns the Redis of this process, for tests that leave it
// running.
func SharedRedis(t testing.TB) *Redis { t.Helper(); return shared(t, oneRedis) }

// SharedRedisCluster returns the Redis Cluster of this process, for tests that
// leave it running.
func SharedRedisCluster(t testing.TB) *RedisCluster { t.Helper(); return shared(t, oneCluster) }

// SharedPgBouncer returns the PgBouncer of this process, before its
// SharedPostgres, for tests that leave both running.
func SharedPgBouncer(t testing.TB) *PgBouncer { t.Helper(); return shared(t, onePgBouncer) }

// NewPostgres starts a PostgreSQL for one test, at whose end it ends.
func NewPostgres(t testing.TB) *Postgres { t.Helper(); return own(t, StartPostgres) }

// NewMariaDB starts a MariaDB for one test, at whose end it ends.
func NewMariaDB(t testing.TB) *MariaDB { t.Helper(); return own(t, StartMariaDB) }

// NewRedis starts a Redis for one test, at whose end it ends.
func NewRedis(t testing.TB) *Redis { t.Helper(); return own(t, StartRedis) }

// NewReplica starts a replica of a Redis for one test, at whose end it ends.
func NewReplica(t testing.TB, master *Redis) *Redis {
	t.Helper()
	return own(t, func() (*Redis, error) { return StartReplica(master) })
}

// NewRedisCluster starts a Redis Cluster for one test, at whose end it ends.
func NewRedisCluster(t testing.TB) *RedisCluster { t.Helper(); return own(t, StartRedisCluster) }

// NewPgBouncer starts a PgBouncer before p for one test, at whose end it ends.
func NewPgBouncer(t testing.TB, p *Postgres) *PgBouncer {
	t.Helper()
	return own(t, func() (*PgBouncer, error) { return StartPgBouncer(p) })
}

// shared returns what start does, or ends the test: it is skipped where a
// program is missing.
func shared[S any](t testing.TB, start func() (S, error)) S {
	t.Helper()
	s, err := start()
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		assert.Skip(t, missing.Error())
	}
	assert.NoError(t, err)
	return s
}

// own returns what start does and closes it at the test's end.
func own[S interface{ Close() }](t testing.TB, start func() (S, error)) S {
	t.Helper()
	s := shared(t, start)
	t.Cleanup(s.Close)
	return s
}
