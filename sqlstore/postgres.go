package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
	"github.com/semel-dev/semel/migrate"
)

// OpenPostgreSQL opens the PostgreSQL database (12 or later) that dsn names,
// with the driver that is registered as driverName, such as "pgx" of
// github.com/jackc/pgx/v5/stdlib. It must be the primary: a standby answers
// with what was. The connections of the store's own are set up by statements,
// so that dsn needs no settings for Semel.
//
// Behind a pooler that gives a server's connection to one transaction at a
// time, such settings would reach other clients: use
// [OpenPostgreSQLThroughPooler] there.
//
// Errors match semel.ErrConfig for a driver that is not registered and where
// the connections are seen to be a pooler's, else semel.ErrStoreUnavailable.
func OpenPostgreSQL(driverName, dsn string) (*Handles, error) {
	own := setUp{session: []string{"SELECT " + settings(ownSettings, false)}}
	return openServer(driverName, dsn, postgres(), own, setUp{}, refusePooler)
}

// OpenPostgreSQLThroughPooler is OpenPostgreSQL for a dsn that leads to a
// PgBouncer with pool_mode=transaction, or its like. Every write of the store
// is then a transaction that makes its own settings, which is two round trips
// more. The driver must not prepare statements unless the pooler keeps them
// apart (PgBouncer 1.21 and later): with pgx, put
// default_query_exec_mode=simple_protocol into dsn.
func OpenPostgreSQLThroughPooler(driverName, dsn string) (*Handles, error) {
	d := postgres()
	d.limits = "SELECT " + settings(ownLimits, true)
	return openServer(driverName, dsn, d, setUp{}, setUp{}, ping)
}

// refusePooler is an error if two connections have one server's process.
func refusePooler(ctx context.Context, business *sql.DB) error {
	var processes [2]int64
	for i := range processes {
		conn, err := business.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() // at the end: they must be two
		if err := conn.QueryRowContext(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&processes[i]); err != nil {
			return err
		}
	}
	if processes[0] == processes[1] {
		return configError("the data source name leads to a pooler that shares the server's connections: use OpenPostgreSQLThroughPooler")
	}
	return nil
}

// setting is one of PostgreSQL's with its value.
type setting struct{ name, value string }

// ownLimits are those under which the store's own statements run. A client that
// stands still, or whose host is lost, keeps its locks no longer than its
// statements may last.
var ownLimits = []setting{
	{"statement_timeout", fmt.Sprint(serverLimit.Milliseconds())},
	{"idle_in_transaction_session_timeout", fmt.Sprint(semel.DefaultStoreTimeout.Milliseconds())},
	{"tcp_user_timeout", fmt.Sprint(semel.DefaultStoreTimeout.Milliseconds())},
}

// ownSettings are those of a connection of the store's own. Its statements look
// for one row or for the end of an index; a plan that was made while the table
// was small must not read all of it when it has grown.
var ownSettings = append(slices.Clip(ownLimits),
	setting{"default_transaction_isolation", "read committed"}, setting{"enable_seqscan", "off"}, setting{"jit", "off"})

// settings makes them for the transaction, or for the session. They are calls
// of a function, since a query is what every protocol can send.
func settings(all []setting, local bool) string {
	calls := make([]string, len(all))
	for i, s := range all {
		calls[i] = fmt.Sprintf("pg_catalog.set_config('%s', '%s', %v)", s.name, s.value, local)
	}
	return strings.Join(calls, ", ")
}

// postgres is the dialect of PostgreSQL 12 and later.
//
// The clock is clock_timestamp(): now() is that of the transaction's first
// statement. It is volatile, so that no index is searched for it, and asked is
// not.
func postgres() *dialect {
	return &dialect{
		example:  `_ "github.com/jackc/pgx/v5/stdlib", whose name is "pgx"`,
		now:      "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint",
		asked:    "(extract(epoch FROM pg_catalog.statement_timestamp()) * 1000000)::bigint",
		lock:     " FOR UPDATE",
		lockFree: " FOR UPDATE SKIP LOCKED",
		ignore:   " ON CONFLICT (scope, idempotency_key) DO NOTHING",
		limit:    serverLimit,
		maxReply: "SELECT 16 << 20",
		numbered: true,
		schema: `SELECT pg_catalog.quote_ident(s.name) || '.' FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY s (name, n)
JOIN pg_catalog.pg_tables t ON t.schemaname = s.name AND t.tablename = 'semel_records' WHERE s.name NOT LIKE 'pg\_temp%' ORDER BY n LIMIT 1`,
		own: sql.TxOptions{Isolation: sql.LevelReadCommitted},
		sweep: `DELETE FROM semel_records WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM semel_records WHERE expires <= {asked} + ? AND generation = 0 ORDER BY expires LIMIT ?{lockFree}))
AND coalesce(expires <= {asked} + ?, FALSE)`, // in no form that an index has: that would read all that has expired
		claim:  postgresClaim,
		extend: "UPDATE semel_records SET version = version + 1, renewed = c.now, lease_end = c.now + ?, reply_started = reply_started OR ?" + postgresHeld,
		finish: `UPDATE semel_records SET version = version + 1, state = ?, reply_kept = ?, status = ?, header = ?, body = ?,
	finished = c.now, expires = c.now + ?` + strings.Replace(postgresHeld, "{now} AS now", "{now} AS now{waits}", 1) + " AND NOT is_open",
		joinedFinish: true,
		// Several statements without arguments are one round trip. The limits
		// end the transaction of a process that stands still or whose host is
		// lost, also while it finishes its claim.
		opened: func(idle time.Duration) string {
			return fmt.Sprintf(`SELECT pg_catalog.set_config(s.name, s.value, true) FROM (VALUES
	('idle_in_transaction_session_timeout', '%[1]d'), ('tcp_user_timeout', '%[1]d')) s (name, value) WHERE pg_catalog.current_setting(s.name) = '0';
SAVEPOINT %[2]s`, idle.Milliseconds(), savepointName)
		},
		release:    "RELEASE SAVEPOINT " + savepointName + "; SELECT " + settings(ownLimits, true),
		waits:      `pg_catalog.set_config('synchronous_commit', coalesce(nullif(pg_catalog.current_setting('synchronous_commit'), 'off'), 'on'), true)`,
		durable:    `SELECT pg_catalog.current_setting('fsync') = 'on' AND pg_catalog.current_setting('synchronous_commit') <> 'off'`,
		migrations: migrate.PostgreSQL(),
		text:       &sqltext.PostgreSQL,
		errors: faults{
			again:   func(err error) bool { return slices.Contains([]string{"40001", "40P01"}, sqlState(err)) },
			refused: refusedByPostgres,
			// No such savepoint, or no transaction.
			ended: func(err error) bool { return slices.Contains([]string{"3B001", "25P01"}, sqlState(err)) },
			stays: never,
		},
	}
}

// postgresClaim returns the record that it makes or finds. A rival's, committed
// since the statement began, is neither made nor seen.
const postgresClaim = `WITH claimed AS (
	INSERT INTO semel_records ({columns}) SELECT {claimed} FROM (SELECT {now} AS now) c
	ON CONFLICT (scope, idempotency_key) DO NOTHING RETURNING {columns})
SELECT TRUE, {now}, {columns} FROM claimed UNION ALL
SELECT FALSE, {now}, {columns} FROM semel_records WHERE scope = ? AND idempotency_key = ?`

// postgresHeld is the condition of the usual case. The row is locked, then the
// clock is read, then the row is written, if it is still as it was seen.
const postgresHeld = `
FROM (SELECT s, k, {now} AS now FROM (
	SELECT scope AS s, idempotency_key AS k FROM semel_records WHERE scope = ? AND idempotency_key = ? FOR UPDATE) locked) c
WHERE scope = c.s AND idempotency_key = c.k AND token = ? AND attempt = ? AND state = 1`

// sqlState returns the SQLSTATE of an error, or "". The drivers for PostgreSQL
// have a method for it.
func sqlState(err error) string {
	coded, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok {
		return ""
	}
	return coded.SQLState()
}

// refusedByPostgres reports whether a COMMIT failed in the transaction itself:
// by a serialization failure, a deferred constraint or what a deferred trigger
// raises. An error of the server as a whole, or of the connection, may come
// after the commit.
//
// The pgxstore looks at the severity instead, which is ERROR where the session
// goes on, whatever the class. Here it is out of reach: the drivers give it in a
// field of a type that only they name, or in the text in the server's language.
// So the classes are those that have no other severity. What is left out, such
// as a full disk (53100) or a canceled COMMIT (57014), is answered as unknown,
// and the record tells later what became of it.
func refusedByPostgres(err error) bool {
	state := sqlState(err)
	if len(state) != 5 || state == "40003" { // statement completion unknown
		return false
	}
	return slices.Contains([]string{"22", "23", "25", "40", "42", "44", "P0"}, state[:2])
}
