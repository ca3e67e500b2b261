package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/semel-dev/semel"
)

func misuse(format string, args ...any) error {
	return semel.NewError(semel.CodeTxMisuse, nil, "sqlstore: "+format, args...)
}

// Tx returns the business transaction of the joined attempt that ctx belongs
// to. The first call opens it, and of SQLite takes the write lock; later calls
// return the same one. What it writes is committed together with the reply,
// or rolled back, after the handler has returned.
//
// Outside a joined attempt, in an attempt of another mode inside one, and after
// the handler has returned, it is an error that matches semel.ErrTxMisuse. One that
// matches semel.ErrStoreUnavailable means that the writer, or a connection, was
// not free in time.
func Tx(ctx context.Context) (*JoinedTx, error) {
	j, ok := ctx.Value(jointKey{}).(*joint)
	if !ok {
		return nil, misuse("no joined attempt in this context: run the handler in joined mode (semelhttp.Route.Mode, or semel.Call.Mode without HTTP), and pass on the context that it was given")
	}
	if !j.isOf(ctx) {
		return nil, misuse("the joined transaction in this context belongs to another attempt, around this one: run this one in joined mode too, or open the transaction outside it")
	}
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	return &JoinedTx{joint: j}, nil
}

// JoinedTx is a transaction that can neither commit nor outlive its handler.
// Its four methods are what sqlc calls a DBTX, GORM a ConnPool and bun an
// IConn. It refuses BEGIN, COMMIT and ROLLBACK as statements; savepoints are
// free to use. With MariaDB it refuses as well what commits by itself, such as
// CREATE TABLE and SET autocommit, SET GLOBAL, and comments that the server
// executes. What it refuses, and whatever comes after the handler has returned,
// is an error that matches semel.ErrTxMisuse.
//
// What a statement leaves on the connection (a setting, a temporary table, a
// lock of the session) ends with the transaction: the connection is closed, and
// the next transaction opens another. So it is after MariaDB's CALL, EXECUTE and
// the like, whatever they did. SET LOCAL, ON COMMIT DROP and the locks of
// a transaction cost nothing. Behind a pooler, whose connections to the server
// are not closed, such a statement is refused.
//
// Once the transaction is gone (a deadlock, a lost connection, a statement that
// was cut off by its context, a full disk, the handler's deadline) every call
// fails, also if the first error was ignored (R12), and nothing is committed.
// So it is after any error with PostgreSQL, unless ROLLBACK TO a savepoint
// follows.
type JoinedTx struct{ joint *joint }

// ExecContext executes a statement.
func (t *JoinedTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tx, err := t.use(query)
	if err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a query. Close its rows before the handler returns.
func (t *JoinedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	tx, err := t.use(query)
	if err != nil {
		return nil, err
	}
	return tx.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query for one row. Errors come from its Scan.
func (t *JoinedTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	tx, err := t.use(query)
	if err != nil {
		return rowOf(ctx, err)
	}
	return tx.QueryRowContext(ctx, query, args...)
}

// PrepareContext prepares a statement, which lives as long as the transaction.
func (t *JoinedTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	tx, err := t.use(query)
	if err != nil {
		return nil, err
	}
	return tx.PrepareContext(ctx, query)
}

// use returns the transaction for one statement.
func (t *JoinedTx) use(query string) (*sql.Tx, error) {
	effect := t.joint.store.dialect.text.Look(query)
	if effect.Refused != "" {
		return nil, misuse("%s", effect.Refused)
	}
	return t.joint.current(effect)
}

// rowOf returns a row whose Scan returns err: that of a database that cannot
// be connected to.
func rowOf(ctx context.Context, err error) *sql.Row {
	db := sql.OpenDB(failing{err})
	defer db.Close()
	return db.QueryRowContext(ctx, "")
}

// failing is a connector that never connects.
type failing struct{ err error }

var _ driver.Connector = failing{}

// Connect returns the error.
func (f failing) Connect(context.Context) (driver.Conn, error) { return nil, f.err }

// Driver returns none, since nobody asks.
func (f failing) Driver() driver.Driver { return nil }
