package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/semel-dev/semel/internal/sqltext"
)

// watchedConn is a connection of Handles.Write to MariaDB. In a transaction of
// joined mode it lets nothing through once that is gone (R12): after a deadlock
// the server has rolled all of it back, and would commit what comes after one
// by one. Other transactions are the driver's own.
type watchedConn struct {
	guardedConn

	tx *watchedTx // nil outside one
}

var (
	_ driver.ConnBeginTx = (*watchedConn)(nil)
	_ gate               = (*watchedConn)(nil)
	_ driver.Tx          = (*watchedTx)(nil)
)

func newWatchedConn(conn driver.Conn) driver.Conn {
	c := &watchedConn{guardedConn: guardedConn{plainConn: plainConn{Conn: conn}}}
	c.gate = c
	return c
}

// watchedTx is a transaction of joined mode.
type watchedTx struct {
	driver.Tx

	conn    *watchedConn
	failed  bool  // a statement did
	suspect bool  // one may have ended the transaction by what it called
	gone    error // that it is not there any more
}

// BeginTx begins a transaction.
func (c *watchedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.plainConn.BeginTx(ctx, opts)
	if err != nil || ctx.Value(watchedKey{}) == nil {
		return tx, err
	}
	c.tx = &watchedTx{Tx: tx, conn: c}
	return c.tx, nil
}

// check asks the server whether the transaction is there, if there is reason
// to. One that is gone after a failure was rolled back; unless the statement
// may have committed it before.
func (c *watchedConn) check() error {
	switch {
	case c.tx == nil || c.tx.gone == nil && !c.tx.failed && !c.tx.suspect:
		return nil
	case c.tx.gone != nil:
		return c.tx.gone
	}
	there, err := run(context.Background(), c.Conn, "SELECT @@in_transaction")
	switch {
	case err == nil && isTrue(there):
		c.tx.failed, c.tx.suspect = false, false
		return nil
	case c.tx.suspect:
		c.tx.gone = errors.Join(errGone, err)
	default:
		c.tx.gone = errors.Join(errRolledBack, err)
	}
	return c.tx.gone
}

// isTrue reads a number of a driver, which may give it as text.
func isTrue(v driver.Value) bool { return fmt.Sprintf("%s", v) == "1" || fmt.Sprint(v) == "1" }

func (c *watchedConn) after(query string, err error) error {
	if c.tx != nil && !errors.Is(err, driver.ErrSkip) {
		c.tx.failed = c.tx.failed || err != nil
		c.tx.suspect = c.tx.suspect || !strings.HasPrefix(query, mariadbBlock) && sqltext.MariaDB.Look(query).MayEnd
	}
	return err
}

func (c *watchedConn) rows(query string, r driver.Rows) driver.Rows {
	if c.tx == nil {
		return r
	}
	return &watchedRows{Rows: r, conn: c, query: query}
}

// Commit commits, unless the transaction is gone.
func (t *watchedTx) Commit() error {
	err := t.conn.check()
	t.conn.tx = nil
	if err != nil {
		t.Tx.Rollback() //nolint:errcheck // it was gone before.
		return err
	}
	return t.Tx.Commit()
}

// Rollback rolls back what is there.
func (t *watchedTx) Rollback() error {
	t.conn.tx = nil
	return t.Tx.Rollback()
}

// watchedRows tell of an error that comes amid them. The rest is the driver's
// own, or what database/sql takes for a driver that does not say.
type watchedRows struct {
	driver.Rows

	conn  *watchedConn
	query string
}

var (
	_ driver.RowsNextResultSet              = (*watchedRows)(nil)
	_ driver.RowsColumnTypeScanType         = (*watchedRows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*watchedRows)(nil)
	_ driver.RowsColumnTypeLength           = (*watchedRows)(nil)
	_ driver.RowsColumnTypeNullable         = (*watchedRows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*watchedRows)(nil)
)

// Next reads the next row.
func (r *watchedRows) Next(dest []driver.Value) error { return r.told(r.Rows.Next(dest)) }

func (r *watchedRows) told(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return r.conn.after(r.query, err)
}

// HasNextResultSet says whether there is another.
func (r *watchedRows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

// NextResultSet goes on to it.
func (r *watchedRows) NextResultSet() error {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	return r.told(n.NextResultSet())
}

// ColumnTypeScanType returns the Go type of a column.
func (r *watchedRows) ColumnTypeScanType(index int) reflect.Type {
	if t, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName returns the database's name of a column's type.
func (r *watchedRows) ColumnTypeDatabaseTypeName(index int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// ColumnTypeLength returns the length of a column, where it has one.
func (r *watchedRows) ColumnTypeLength(index int) (length int64, ok bool) {
	if t, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return t.ColumnTypeLength(index)
	}
	return 0, false
}

// ColumnTypeNullable says whether a column may be NULL, where that is known.
func (r *watchedRows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if t, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return t.ColumnTypeNullable(index)
	}
	return false, false
}

// ColumnTypePrecisionScale returns the precision of a decimal column.
func (r *watchedRows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if t, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return t.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}
