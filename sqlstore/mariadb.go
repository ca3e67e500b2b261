package sqlstore

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
	"github.com/semel-dev/semel/migrate"
)

// OpenMariaDB opens the MariaDB database (10.6 or later) that dsn names, with
// the driver that is registered as driverName, such as "mysql" of
// github.com/go-sql-driver/mysql. The connections of the store's own are set
// up by statements, so that dsn needs no settings for Semel: not for the
// isolation level, the time zone, sql_mode or clientFoundRows.
//
// dsn leads to the server that writes, and not to a proxy that sends reads
// elsewhere. The tables are InnoDB's; so must those of the business be, or a
// rollback does not undo what is written to them.
//
// Errors match semel.ErrConfig for a driver that is not registered or a dsn
// that it cannot read, else semel.ErrStoreUnavailable.
func OpenMariaDB(driverName, dsn string) (*Handles, error) {
	d := mariadb()
	own := setUp{session: mariadbSession(), wrap: newCachingConn}
	business := setUp{session: []string{"SET @semel_idle = @@idle_transaction_timeout", mariadbIdle(semel.DefaultHandlerDeadline)}, wrap: newWatchedConn}
	return openServer(driverName, dsn, d, own, business, ping)
}

// mariadbIdle has the server end a transaction of the business that is left
// idle, unless it had a limit of its own when the connection was opened.
func mariadbIdle(limit time.Duration) string {
	return fmt.Sprintf("SET SESSION idle_transaction_timeout = COALESCE(NULLIF(@semel_idle, 0), %d)", int64(math.Ceil(limit.Seconds())))
}

// mariadbBlock begins a block, by which several statements are one round trip.
// A handler cannot begin one in its transaction.
const mariadbBlock = "BEGIN NOT ATOMIC "

// mariadbSession sets up a connection of the store's own. MariaDB counts the wait
// for a lock on a row, that for one on a table, and the statement apart: none
// may last longer than the limit.
func mariadbSession() []string {
	limit := int(serverLimit.Seconds())
	return []string{
		fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %[1]d, lock_wait_timeout = %[1]d, max_statement_time = %[1]d, idle_transaction_timeout = %[2]d",
			limit, int(semel.DefaultStoreTimeout.Seconds())),
		"SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
		// REPEATABLE READ locks the gap where a key is to be, against its rivals.
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	}
}

// mariadb is the dialect of MariaDB 10.6 and later.
//
// Its clock is that of a statement's start, in NOW() as in UTC_TIMESTAMP(): it
// is old by the time that the statement waited for the row. SYSDATE() is not,
// but is in the session's time zone. The difference of SYSDATE() and NOW() is
// the wait, whatever the zone; less than a quarter of an hour, so that a change
// of summer time in it, which is whole quarters, is taken off.
func mariadb() *dialect {
	const (
		started = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
		waited  = "MOD(MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), 900000000) + 900000000, 900000000)"
	)
	return &dialect{
		example:  `_ "github.com/go-sql-driver/mysql", whose name is "mysql"`,
		now:      "(" + started + " + " + waited + ")",
		asked:    started,
		lock:     " FOR UPDATE",
		lockFree: " FOR UPDATE SKIP LOCKED",
		limit:    serverLimit,
		schema:   "SELECT CONCAT('`', REPLACE(DATABASE(), '`', '``'), '`.')",
		// Of a statement, in which a byte may be two, and the other columns.
		maxReply: "SELECT GREATEST(LEAST(@@max_allowed_packet, 32 << 20) DIV 2 - 65536, 0)",
		// UTC_TIMESTAMP() is what SET timestamp says; a temporary table is of a
		// database, and found before its other tables.
		clear: []string{"SET timestamp = DEFAULT", "DROP TEMPORARY TABLE IF EXISTS semel_records, semel_audit"},
		// Read in the other order the rows would be locked before they are
		// chosen, and waited for. Nor is the second look at expires to be one
		// into the index, which would read all that has expired.
		sweep: `DELETE r FROM (
	SELECT scope, idempotency_key FROM semel_records WHERE expires <= {asked} + ? AND generation = 0 ORDER BY expires LIMIT ?{lockFree}) d
STRAIGHT_JOIN semel_records r ON r.scope = d.scope AND r.idempotency_key = d.idempotency_key
WHERE r.expires + 0 <= {asked} + ?`,
		// The NOT EXISTS locks nothing in READ COMMITTED, unlike an INSERT that
		// meets the key.
		claim: `INSERT INTO semel_records ({columns}) SELECT {claimed} FROM (SELECT {now} AS now) c
WHERE NOT EXISTS (SELECT 1 FROM semel_records WHERE scope = ? AND idempotency_key = ?) RETURNING TRUE, {now}, {columns}`,
		// Assignments are made in their order, each after the row is locked.
		extend: "UPDATE semel_records SET version = version + 1, renewed = {now}, lease_end = renewed + ?, reply_started = reply_started OR ?" + mariadbHeld,
		finish: `UPDATE semel_records SET version = version + 1, state = ?, reply_kept = ?, status = ?, header = ?, body = ?,
	finished = {now}, expires = finished + ?` + mariadbHeld + " AND NOT is_open",
		opened: func(idle time.Duration) string {
			return mariadbBlock + mariadbIdle(idle) + "; SAVEPOINT " + savepointName + "; END"
		},
		release:    mariadbBlock + "RELEASE SAVEPOINT " + savepointName + "; " + mariadbIdle(semel.DefaultHandlerDeadline) + "; END",
		limitStays: true,
		durable:    "SELECT @@innodb_flush_log_at_trx_commit = 1 AND (NOT @@log_bin OR @@sync_binlog = 1)",
		logged:     mariadbLogged,
		migrations: migrate.MariaDB(),
		text:       &sqltext.MariaDB,
		errors: faults{
			again:   func(err error) bool { return slices.Contains(mariadbAgain, errorNumber(err)) },
			refused: func(err error) bool { return isUndone(err) || errorNumber(err) == errDeadlock },
			ended: func(err error) bool {
				_, gone := errors.AsType[*goneError](err)
				return errorNumber(err) == errNoSavepoint || gone && !isUndone(err)
			},
			stays: never,
		},
	}
}

// mariadbLogged looks at InnoDB's log. With a binary log, which is written before
// a commit is shown, nothing is to be waited for.
const mariadbLogged = `SELECT IF(@@log_bin, 0, max(IF(variable_name = 'INNODB_LSN_CURRENT', CAST(variable_value AS SIGNED), 0))),
	max(IF(variable_name = 'INNODB_LSN_FLUSHED', CAST(variable_value AS SIGNED), 0))
FROM information_schema.global_status WHERE variable_name IN ('INNODB_LSN_CURRENT', 'INNODB_LSN_FLUSHED')`

// mariadbHeld is the condition of the usual case.
const mariadbHeld = " WHERE scope = ? AND idempotency_key = ? AND token = ? AND attempt = ? AND state = 1"

// Numbers of MariaDB's errors.
const (
	errDuplicate   = 1062 // ER_DUP_ENTRY: a rival has inserted the key
	errChanged     = 1020 // ER_CHECKREAD: since the snapshot
	errDeadlock    = 1213 // ER_LOCK_DEADLOCK: all of the transaction is undone
	errNoSavepoint = 1305 // ER_SP_DOES_NOT_EXIST: the transaction has ended
)

// mariadbAgain are the errors after which a transaction of the store's own has
// had no effect and is sent again. 1205, a lock that was waited for in vain, is
// none: it undoes the statement alone, and the time is spent.
var mariadbAgain = []int{errDuplicate, errChanged, errDeadlock}

// errorNumber returns the number of a server's error, or 0. The driver's error
// has it in a field of a type that cannot be named without importing the
// driver. It is read where it stands in the text, "Error 1213 (40001): …",
// which the driver has written in this way since its first release.
func errorNumber(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		text, ok := strings.CutPrefix(err.Error(), "Error ")
		if !ok {
			continue
		}
		digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if n, err := strconv.Atoi(text[:max(digits, 0)]); err == nil {
			return n
		}
	}
	return 0
}
