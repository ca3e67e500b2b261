//go:build unix

package services_test

import (
	"database/sql"
	"os"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

func TestMain(m *testing.M) { os.Exit(services.Main(m)) }

// restartable is what all servers are.
type restartable interface {
	Kill()
	Start() error
}

func TestServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open func(t *testing.T) (restartable, store)
	}{
		"PostgreSQL": {func(t *testing.T) (restartable, store) {
			p := services.NewPostgres(t)
			return p, &sqlStore{"pgx", p.NewDatabase(t)}
		}},
		"MariaDB": {func(t *testing.T) (restartable, store) {
			m := services.NewMariaDB(t)
			return m, &sqlStore{"mysql", m.NewDatabase(t)}
		}},
		"Redis": {func(t *testing.T) (restartable, store) {
			r := services.NewRedis(t)
			return r, &redisStore{r}
		}},
	} {
		t.Run(name+" keeps what it acknowledged when it is killed", func(t *testing.T) {
			t.Parallel()
			server, store := c.open(t)
			for _, want := range []string{"1", "2", "3"} {
				store.add(t)
				server.Kill()
				assert.True(t, !store.answers(t), "a killed server answers")
				assert.NoError(t, server.Start())
				assert.Equal(t, store.count(t), want)
			}
		})
	}
}

// store counts in a server.
type store interface {
	add(t *testing.T)
	count(t *testing.T) string
	answers(t *testing.T) bool
}

type sqlStore struct{ driver, url string }

func (s *sqlStore) do(t *testing.T, f func(db *sql.DB) error) error {
	t.Helper()
	db, err := sql.Open(s.driver, s.url)
	assert.NoError(t, err)
	defer db.Close()
	return f(db)
}

func (s *sqlStore) add(t *testing.T) {
	t.Helper()
	assert.NoError(t, s.do(t, func(db *sql.DB) error {
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS added (one INT)"); err != nil {
			return err
		}
		_, err := db.ExecContext(t.Context(), "INSERT INTO added VALUES (1)")
		return err
	}))
}

func (s *sqlStore) count(t *testing.T) string {
	t.Helper()
	var n string
	assert.NoError(t, s.do(t, func(db *sql.DB) error {
		return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM added").Scan(&n)
	}))
	return n
}

func (s *sqlStore) answers(t *testing.T) bool {
	t.Helper()
	return s.do(t, func(db *sql.DB) error { return db.PingContext(t.Context()) }) == nil
}

type redisStore struct{ redis *services.Redis }

func (s *redisStore) add(t *testing.T) {
	t.Helper()
	_, err := s.redis.Do("INCR", "added")
	assert.NoError(t, err)
}

func (s *redisStore) count(t *testing.T) string {
	t.Helper()
	n, err := s.redis.Do("GET", "added")
	assert.NoError(t, err)
	return n
}

func (s *redisStore) answers(t *testing.T) bool {
	t.Helper()
	_, err := s.redis.Do("PING")
	return err == nil
}
