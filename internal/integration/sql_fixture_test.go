package integration

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/sqlstore"
)

// sqlServer is what a test has to say differently to one server than to
// another.
type sqlServer struct {
	driver string
	open   func(driverName, dsn string) (*sqlstore.Handles, error)
	// database makes an empty database and returns two names of it: that of
	// the store and that of the test, which leads past a pooler.
	database func(t testing.TB) (dsn, direct string)

	clock            []string // makes shift(): by how much the clock was moved
	payments, insert string   // the business table, and how a row is added
	counting         []string
	writes           string   // how many there were
	busy             string   // how many connections are at work
	empty            []string // tables
	stall            []string // in a transaction, keeps all writers waiting
	resume           string
	hold             string // locks the row of a scope and a key
	waiting          string // how many statements wait for a lock
	bytes            string // formats a literal of bytes
	session          string // the id of a connection
	idle             string // how many milliseconds a transaction may be idle
	kill             func(id int64) string
	killAll          string // all connections but the test's
	others           string // how many connections there are but the one that asks
	migrations       migrate.Set
	schema           string // in which the tables are

	// See sql_cost_test.go.
	replayCost, openCost, commitCost int
	plan                             func(t *testing.T, s *sqlStore, query string) string
	scan, sweeps                     *regexp.Regexp // a plan that reads all of a table, and one that searches the index of the sweep
	deletes                          *regexp.Regexp // a plan that finds the rows of a sweep by their place
	grow, analyze, small             string
	watch                            []string // lets the server count what is read of tables
	scanned                          string   // how many rows of the records were read, without an index where the server can tell
	ends                             []string // that would end a transaction
	undone                           []string // codes of errors after which nothing took effect
	otherwise                        string   // the code of one after which nobody knows
	failing                          []string // makes every other UPDATE of a record fail with a code
}

// sqlWays are the ways to reach a server, each of which the contract is held
// to.
var sqlWays = map[string]*sqlServer{
	"PostgreSQL":                             postgresBy("", sqlstore.OpenPostgreSQL),
	"PostgreSQL by the simple protocol":      postgresBy("&default_query_exec_mode=simple_protocol", sqlstore.OpenPostgreSQL),
	"MariaDB":                                overMariaDB(""),
	"MariaDB with a driver set otherwise":    overMariaDB("?interpolateParams=true&clientFoundRows=true"),
	"PostgreSQL behind PgBouncer":            pooled(postgresBy("&default_query_exec_mode=simple_protocol", sqlstore.OpenPostgreSQLThroughPooler)),
	"PostgreSQL behind PgBouncer, exec mode": pooled(postgresBy("&default_query_exec_mode=exec", sqlstore.OpenPostgreSQLThroughPooler)),
}

// postgresBy is PostgreSQL as a URL with query and an Open function reach it.
func postgresBy(query string, open func(driverName, dsn string) (*sqlstore.Handles, error)) *sqlServer {
	return &sqlServer{
		driver: "pgx",
		open:   open,
		database: func(t testing.TB) (dsn, direct string) {
			direct = services.SharedPostgres(t).NewDatabase(t)
			return direct + query, direct
		},
		clock: []string{
			"CREATE TABLE clock (micros bigint NOT NULL)",
			"CREATE FUNCTION shift() RETURNS bigint LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN (SELECT micros FROM clock); END'",
			"INSERT INTO clock VALUES (0)",
		},
		payments: "CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payer text NOT NULL)",
		insert:   "INSERT INTO payments (payer) VALUES ($1)",
		counting: []string{
			"CREATE SEQUENCE writes",
			`CREATE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN PERFORM nextval(''writes''); RETURN NULL; END'`,
			"CREATE TRIGGER count_write AFTER INSERT OR UPDATE OR DELETE ON semel_records FOR EACH ROW EXECUTE FUNCTION count_write()",
		},
		busy:       postgresBusy,
		empty:      []string{postgresEmpty},
		writes:     "SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM writes",
		stall:      []string{"BEGIN", "LOCK TABLE semel_records IN EXCLUSIVE MODE"},
		resume:     "ROLLBACK",
		hold:       "SELECT state FROM semel_records WHERE scope = $1 AND idempotency_key = $2 FOR UPDATE",
		waiting:    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
		bytes:      `'\x%x'`,
		migrations: migrate.PostgreSQL(),
		schema:     "current_schema()",
		replayCost: 1, openCost: 2, commitCost: 3,
		plan:    postgresPlan,
		deletes: regexp.MustCompile(`Tid Scan on semel_records`),
		scan:    regexp.MustCompile(`Seq Scan on semel_records`),
		sweeps:  regexp.MustCompile(`semel_records_expires.*\|\n.*Index Cond: .*expires <= `),
		grow: `INSERT INTO semel_records SELECT 'grown', i::text::bytea, 1, 2, false, 0, sha256(i::text::bytea), '', 1, '', '', '', '', '', false, NOT true, NOT false,
			1, 2, 3, 4, 4, 5, 4000000000000000 + i, 201, '', '' FROM generate_series(1, 50000) i`,
		analyze:   "semel_records",
		small:     "VACUUM ANALYZE semel_records",
		scanned:   "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'semel_records'",
		killAll:   "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
		others:    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
		session:   "SELECT pg_backend_pid()",
		idle:      postgresIdle,
		kill:      func(id int64) string { return fmt.Sprintf("SELECT pg_terminate_backend(%d)", id) },
		ends:      []string{"ABORT", "PREPARE TRANSACTION 'x'", "SELECT $a$;$a$; COMMIT"},
		undone:    []string{"40001", "40P01"},
		otherwise: "58030",
		failing: []string{
			"CREATE SEQUENCE tries",
			`CREATE FUNCTION fail_sometimes() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN IF nextval(''tries'') %% 2 = 1 THEN RAISE EXCEPTION USING ERRCODE = ''%s''; END IF; RETURN NULL; END'`,
			"CREATE TRIGGER fail_sometimes AFTER UPDATE ON semel_records FOR EACH ROW EXECUTE FUNCTION fail_sometimes()",
		},
	}
}

const postgresIdle = "SELECT (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000)::bigint"

// overMariaDB is MariaDB as a data source name with query reaches it.
func overMariaDB(query string) *sqlServer {
	trigger := "CREATE TRIGGER count_%[1]s AFTER %[1]s ON semel_records FOR EACH ROW INSERT INTO writes VALUES ()"
	return &sqlServer{
		driver: "mysql",
		open:   sqlstore.OpenMariaDB,
		database: func(t testing.TB) (dsn, direct string) {
			direct = services.SharedMariaDB(t).NewDatabase(t)
			return direct + query, direct
		},
		clock: []string{
			"CREATE TABLE clock (micros BIGINT NOT NULL)",
			"CREATE FUNCTION shift() RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA RETURN (SELECT micros FROM clock)",
			"INSERT INTO clock VALUES (0)",
		},
		payments: "CREATE TABLE payments (id BIGINT AUTO_INCREMENT PRIMARY KEY, payer TEXT NOT NULL)",
		insert:   "INSERT INTO payments (payer) VALUES (?)",
		counting: []string{
			"CREATE TABLE writes (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			fmt.Sprintf(trigger, "INSERT"), fmt.Sprintf(trigger, "UPDATE"), fmt.Sprintf(trigger, "DELETE"),
		},
		busy:   "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND command <> 'Sleep' AND id <> connection_id()",
		empty:  []string{"TRUNCATE semel_records", "TRUNCATE semel_audit", "TRUNCATE payments", "TRUNCATE writes"},
		writes: "SELECT count(*) FROM writes",
		stall:  []string{"LOCK TABLES semel_records READ"},
		resume: "UNLOCK TABLES",
		hold:   "SELECT state FROM semel_records WHERE scope = ? AND idempotency_key = ? FOR UPDATE",
		// InnoDB's own list is not renewed for who asks often. Nothing that
		// waits for no lock takes so long.
		waiting: `SELECT count(*) FROM information_schema.processlist WHERE db = database() AND command IN ('Execute', 'Query')
			AND time_ms > 300 AND id <> connection_id()`,
		bytes:      "x'%x'",
		migrations: migrate.MariaDB(),
		schema:     "database()",
		replayCost: 2, openCost: 2, commitCost: 6,
		plan:    mariadbPlan,
		deletes: regexp.MustCompile(`\|r\|eq_ref\|`),
		scan:    regexp.MustCompile(`semel_records\|(ALL|index)\||\|r\|(ALL|index)\|`),
		sweeps:  regexp.MustCompile(`semel_records\|range\|[^|]*\|semel_records_expires\|`),
		grow: `INSERT INTO semel_records WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000)
			SELECT 'grown', concat(a.i, ':', b.i), 1, 2, false, 0, unhex(md5(concat(a.i, ':', b.i))), unhex(md5('')), 1, unhex(sha2('', 256)), unhex(sha2('', 256)), '', unhex(sha2('', 256)), '', false, NOT true, NOT false,
			1, 2, 3, 4, 4, 5, 4000000000000000 + a.i * 1000 + b.i, 201, '', '' FROM s a JOIN s b ON b.i <= 50`,
		analyze: "TABLE semel_records",
		small:   "ANALYZE TABLE semel_records",
		watch:   []string{"SET GLOBAL userstat = 1"},
		scanned: "SELECT coalesce(sum(rows_read), 0) FROM information_schema.table_statistics WHERE table_schema = database() AND table_name = 'semel_records'",
		others:  "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()",
		session: "SELECT connection_id()",
		idle:    "SELECT @@idle_transaction_timeout * 1000",
		// One may have ended by itself (1094) before its turn comes.
		killAll: `BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
			FOR victim IN (SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id())
			DO KILL victim.id; END FOR; END`,
		kill:      func(id int64) string { return fmt.Sprintf("KILL %d", id) },
		ends:      []string{"CREATE TABLE t (a INT)", "SET autocommit = 1", "LOCK TABLES payments WRITE", "/*!50000 COMMIT */", "# x\nCOMMIT"},
		undone:    []string{"1213", "1020"},
		otherwise: "1205",
		failing: []string{
			"CREATE SEQUENCE tries",
			`CREATE TRIGGER fail_sometimes AFTER UPDATE ON semel_records FOR EACH ROW
				IF nextval(tries) %% 2 = 1 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %s; END IF`,
		},
	}
}

// pooled is a way that leads through PgBouncer.
func pooled(server *sqlServer) *sqlServer {
	direct := server.database
	server.database = func(t testing.TB) (string, string) {
		dsn, to := direct(t)
		return strings.Replace(dsn, services.SharedPostgres(t).Addr(), services.SharedPgBouncer(t).Addr(), 1), to
	}
	return server
}

// sqlStore is a store on a server with what a test wants to know about it.
type sqlStore struct {
	*sqlstore.Store

	server  *sqlServer
	way     string
	dsn     string
	handles *sqlstore.Handles
	test    *sql.DB // of the test's own, past any pooler
}

// openSQL opens a store that exists.
func openSQL(ctx context.Context, way, dsn string) (*sqlStore, error) {
	s := &sqlStore{way: way, server: sqlWays[way], dsn: dsn}
	var err error
	if s.handles, err = s.server.open(s.server.driver, dsn); err != nil {
		return nil, err
	}
	s.Store, err = sqlstore.New(ctx, s.handles, sqlstore.Config{Hooks: testhook.Hooks{ClockShift: "shift()"}})
	return s, err
}

// newSQL returns a new store in a database of its own.
func newSQL(t testing.TB, way string) *sqlStore {
	t.Helper()
	return sqlWays[way].prepared(t).store(t, way)
}

// sqlDatabase is one that has the tables of the store and of the tests, by its
// two names.
type sqlDatabase struct{ dsn, direct string }

// prepared makes a database.
func (w *sqlServer) prepared(t testing.TB) sqlDatabase {
	t.Helper()
	var db sqlDatabase
	db.dsn, db.direct = w.database(t)
	h, err := w.open(w.driver, db.dsn)
	assert.NoError(t, err)
	defer h.Close()
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	for _, statement := range slices.Concat(w.clock, []string{w.payments}, w.counting) {
		_, err := h.Write.Exec(statement)
		assert.NoError(t, err, statement)
	}
	return db
}

// store opens the store in a database until the test ends.
func (db sqlDatabase) store(t testing.TB, way string) *sqlStore {
	t.Helper()
	s, err := openSQL(t.Context(), way, db.dsn)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.handles.Close()) })
	s.test, err = sql.Open(s.server.driver, db.direct)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.test.Close()) })
	return s
}

// emptied are databases that tests have left which change nothing but rows, for
// the others of the same whole, which are there until it ends.
type emptied[D any] struct {
	mu  sync.Mutex
	all map[emptiedFor][]D
}

type emptiedFor struct {
	whole testing.TB
	way   string
}

func (e *emptied[D]) take(whole testing.TB, way string) (db D, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all[emptiedFor{whole, way}]
	if len(all) == 0 {
		return db, false
	}
	e.all[emptiedFor{whole, way}] = all[1:]
	return all[0], true
}

func (e *emptied[D]) put(whole testing.TB, way string, db D) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[emptiedFor][]D{}
	}
	e.all[emptiedFor{whole, way}] = append(e.all[emptiedFor{whole, way}], db)
}

var emptiedSQL emptied[sqlDatabase]

// What PostgreSQL is asked between two tests in one database. The log refuses to
// be emptied.
const (
	postgresBusy  = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"
	postgresEmpty = "SET session_replication_role = replica; TRUNCATE semel_records, semel_audit, payments; RESET session_replication_role"
)

// emptySQL returns a store without a record for t, in a database that later
// tests of whole may have.
func emptySQL(whole, t testing.TB, way string) *sqlStore {
	t.Helper()
	db, ok := emptiedSQL.take(whole, way)
	if !ok {
		db = sqlWays[way].prepared(whole)
	}
	s := db.store(t, way)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		s.clear(t)
		emptiedSQL.put(whole, way, db)
	})
	return s
}

// clear leaves nothing of a test that changed nothing but rows.
func (s *sqlStore) clear(t testing.TB) {
	t.Helper()
	assert.Eventually(t, "nothing of the test's is at work", func() bool { return s.number(t, s.server.busy) == 0 })
	for _, statement := range s.server.empty {
		s.exec(t, statement)
	}
	s.exec(t, "UPDATE clock SET micros = 0")
	s.exec(t, "UPDATE semel_sweep SET taken = 0")
}

// by returns the store again, opened by another driver.
func (s *sqlStore) by(t testing.TB, driverName string) *sqlStore {
	t.Helper()
	again := *s
	var err error
	again.handles, err = s.server.open(driverName, s.dsn)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, again.handles.Close()) })
	again.Store, err = sqlstore.New(t.Context(), again.handles, sqlstore.Config{Hooks: testhook.Hooks{ClockShift: "shift()"}})
	assert.NoError(t, err)
	return &again
}

func (s *sqlStore) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := s.test.Exec(statement, args...)
	assert.NoError(t, err, statement)
}

// number asks the database for one.
func (s *sqlStore) number(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	assert.NoError(t, s.test.QueryRow(query, args...).Scan(&n), query)
	return n
}

// advance moves the server's clock for this store, in every process.
func (s *sqlStore) advance(t testing.TB, d time.Duration) {
	t.Helper()
	s.exec(t, fmt.Sprintf("UPDATE clock SET micros = micros + %d", d.Microseconds()))
}

func (s *sqlStore) payments(t testing.TB) int {
	t.Helper()
	return int(s.number(t, "SELECT count(*) FROM payments"))
}

// stall keeps every writer of keys waiting.
func (s *sqlStore) stall(t testing.TB) (resume func()) {
	t.Helper()
	conn, err := s.test.Conn(t.Context())
	assert.NoError(t, err)
	for _, statement := range s.server.stall {
		_, err = conn.ExecContext(t.Context(), statement)
		assert.NoError(t, err, statement)
	}
	return func() {
		_, err := conn.ExecContext(context.Background(), s.server.resume)
		assert.NoError(t, err)
		assert.NoError(t, conn.Close())
	}
}

// hold locks the row of a key, as a rival that is about to write it does, and
// leaves it as it is.
func (s *sqlStore) hold(t testing.TB, scope, key string) (release func()) {
	t.Helper()
	tx, err := s.test.BeginTx(context.Background(), nil)
	assert.NoError(t, err)
	var state int
	assert.NoError(t, tx.QueryRow(s.server.hold, []byte(scope), []byte(key)).Scan(&state))
	return func() { assert.NoError(t, tx.Rollback()) }
}

// pay is the work of joined mode: one row in the business table.
func (w *sqlServer) pay(ctx context.Context) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, w.insert, "paid")
	return err
}

// nothing opens the transaction, and sends nothing in it.
func (w *sqlServer) nothing(ctx context.Context) error {
	_, err := sqlstore.Tx(ctx)
	return err
}

// worker is a process that shares the store with the test.
func (s *sqlStore) worker() *exec.Cmd {
	return command("sql-worker", wayVariable+"="+s.way, pathVariable+"="+s.dsn)
}

const wayVariable = "SEMEL_INTEGRATION_WAY"
