package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/pgxstore"
)

// pgxHooks move the clock of a store over a database that was prepared.
var pgxHooks = testhook.Hooks{ClockShift: "semel_test.shift()"}

// testClock makes shift(): by how much the clock was moved. It is plpgsql, so
// that each call sees what is committed by then. Whoever looks for a clock along
// the search path, and not in pg_catalog, finds one that fails.
const testClock = `
CREATE SCHEMA semel_test;
CREATE TABLE semel_test.shift (micros bigint NOT NULL);
INSERT INTO semel_test.shift VALUES (0);
CREATE FUNCTION semel_test.shift() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT micros FROM semel_test.shift); END $$;
CREATE FUNCTION semel_test.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not the server''s clock'; END $$;
CREATE FUNCTION semel_test.statement_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not the server''s clock'; END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = semel_test, pg_catalog, public', current_database()); END $$;`

// testCounter counts the rows that are written to the table of keys, also by
// transactions that are rolled back.
const testCounter = `
CREATE SEQUENCE semel_test.writes;
CREATE FUNCTION semel_test.count_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM nextval('semel_test.writes'); RETURN NULL; END $$;
CREATE TRIGGER count_write AFTER INSERT OR UPDATE OR DELETE ON semel_records FOR EACH ROW EXECUTE FUNCTION semel_test.count_write();`

// pgxPayments is what the work of joined and atomic mode writes.
const pgxPayments = `CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL)`

const pgxPay = `INSERT INTO payments (key) VALUES ($1)`

// pgxStore is a store with what a test wants to know about it.
type pgxStore struct {
	*pgxstore.Store

	url    string    // as the store has it, through a pooler or not
	config pgxConfig // how it was opened
	admin  *pgx.Conn // of the test's own, past any pooler
}

// pgxConfig is a way to open the store.
type pgxConfig struct {
	query     string // added to the URL
	pgbouncer bool
	pgxstore.Config
}

// newPgx returns a new store in a database of its own.
func newPgx(t testing.TB, cfg pgxConfig) *pgxStore {
	t.Helper()
	return newPgxOn(t, services.SharedPostgres(t), cfg)
}

func newPgxOn(t testing.TB, server *services.Postgres, cfg pgxConfig) *pgxStore {
	t.Helper()
	return openPgx(t, server, preparedPgx(t, server), cfg)
}

// preparedPgx returns a new database with all tables, and a clock of its own.
func preparedPgx(t testing.TB, server *services.Postgres) (url string) {
	t.Helper()
	url = server.NewDatabase(t)
	// Not through the pooler, whose connections would outlive the change of
	// the search path.
	assert.NoError(t, pgxstore.Migrate(t.Context(), url))
	conn, err := pgx.Connect(t.Context(), url)
	assert.NoError(t, err)
	defer conn.Close(context.Background()) //nolint:errcheck // what it was asked for is done.
	for _, script := range []string{testClock, testCounter, pgxPayments} {
		_, err := conn.Exec(t.Context(), script)
		assert.NoError(t, err, script)
	}
	return url
}

// openPgx returns a store in a database that was prepared.
func openPgx(t testing.TB, server *services.Postgres, url string, cfg pgxConfig) *pgxStore {
	t.Helper()
	s := &pgxStore{config: cfg, url: url + cfg.query}
	if cfg.pgbouncer {
		s.url = strings.Replace(url, server.Addr(), services.SharedPgBouncer(t).Addr(), 1) + cfg.query
	}
	var err error
	s.admin, err = pgx.Connect(t.Context(), url)
	assert.NoError(t, err)
	t.Cleanup(func() { s.admin.Close(context.Background()) }) //nolint:errcheck // the test is over.
	s.exec(t, `SET search_path = public`)
	s.config.Hooks = pgxHooks
	s.Store, err = pgxstore.Open(t.Context(), s.url, s.config.Config)
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// reopen opens the store again, through a cable, with query added to its URL.
func (s *pgxStore) reopen(t testing.TB, by *cable, query string) {
	t.Helper()
	var err error
	s.Store, err = pgxstore.Open(t.Context(), by.through(s.url)+query, s.config.Config)
	assert.NoError(t, err)
	t.Cleanup(s.Close)
}

// emptiedPgx are databases that tests have done with which change nothing but
// rows: making one takes longer than most of these tests.
var emptiedPgx emptied[string]

// emptyPgx returns a store without a record for t, in a database that later
// tests of whole may have.
func emptyPgx(whole, t testing.TB, way string) *pgxStore {
	t.Helper()
	server := services.SharedPostgres(t)
	url, ok := emptiedPgx.take(whole, way)
	if !ok {
		url = preparedPgx(whole, server)
	}
	s := openPgx(t, server, url, pgxWays[way])
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		s.clear(t)
		emptiedPgx.put(whole, way, url)
	})
	return s
}

// clear leaves nothing of a test that changed nothing but rows.
func (s *pgxStore) clear(t testing.TB) {
	t.Helper()
	assert.Eventually(t, "nothing of the test's is at work", func() bool { return s.number(t, postgresBusy) == 0 })
	s.exec(t, postgresEmpty)
	s.exec(t, `UPDATE semel_test.shift SET micros = 0`)
	s.exec(t, `UPDATE semel_sweep SET taken = 0`)
}

func (s *pgxStore) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := s.admin.Exec(context.Background(), sql, args...)
	assert.NoError(t, err, sql)
}

// number asks for one.
func (s *pgxStore) number(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	var n int64
	assert.NoError(t, s.admin.QueryRow(context.Background(), sql, args...).Scan(&n), sql)
	return n
}

func (s *pgxStore) advance(t testing.TB, d time.Duration) {
	t.Helper()
	s.exec(t, `UPDATE semel_test.shift SET micros = micros + $1`, d.Microseconds())
}

func (s *pgxStore) payments(t testing.TB) int {
	t.Helper()
	return int(s.number(t, `SELECT count(*) FROM payments`))
}

func (s *pgxStore) writes(t testing.TB) int64 {
	t.Helper()
	return s.number(t, `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM semel_test.writes`)
}

// stall keeps every writer of keys waiting, as a long queue would.
func (s *pgxStore) stall(t testing.TB) (resume func()) {
	t.Helper()
	other, err := pgx.ConnectConfig(t.Context(), s.admin.Config())
	assert.NoError(t, err)
	tx, err := other.Begin(t.Context())
	assert.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE semel_records IN EXCLUSIVE MODE`)
	assert.NoError(t, err)
	return func() {
		assert.NoError(t, tx.Rollback(context.Background()))
		assert.NoError(t, other.Close(context.Background()))
	}
}

// pgxPayOne is the work of joined and atomic mode: one row in the business
// table.
func pgxPayOne(ctx context.Context) error {
	tx, err := pgxstore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, pgxPay, "paid")
	return err
}
