package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// writeConn is the connection of Handles.Write. Its transactions take the
// write lock at once, and one that did not end for certain takes its
// connection with it: closing it rolls back whatever is still open.
//
// Every statement comes through here, also a prepared one, and is let through
// only while its transaction lasts (R12): SQLite rolls the whole of it back
// when a statement is interrupted or the disk is full, and would commit what
// comes after one by one.
type writeConn struct {
	guardedConn

	tx *writeTx // nil outside one
}

var (
	_ driver.ConnBeginTx = (*writeConn)(nil)
	_ driver.Tx          = (*writeTx)(nil)
	_ gate               = (*writeConn)(nil)
)

func newWriteConn(conn driver.Conn) *writeConn {
	c := &writeConn{guardedConn: guardedConn{plainConn: plainConn{Conn: conn}}}
	c.gate = c
	return c
}

// BeginTx begins a transaction with the write lock. All isolation levels are
// served by SQLite's only one, serializable.
func (c *writeConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly {
		return nil, errors.New("sqlstore: Handles.Write has no read-only transactions; use Handles.Read")
	}
	if _, err := run(ctx, c.Conn, "BEGIN IMMEDIATE"); err != nil {
		// A driver may report the end of ctx for a BEGIN that took effect.
		c.broken = true
		return nil, err
	}
	c.tx = &writeTx{conn: c}
	return c.tx, nil
}

// writeTx is the transaction of its connection.
type writeTx struct {
	conn   *writeConn
	failed bool  // a statement of it did, and nothing else has run since
	gone   error // that it is not there any more
}

// check is an error if the connection's transaction is not there any more. The
// only question that every driver can put is a BEGIN, which is refused inside
// a transaction. One that is accepted stays open, for Rollback to end.
func (c *writeConn) check() error {
	switch {
	case c.tx == nil:
		return nil
	case c.tx.gone != nil:
		return c.tx.gone
	}
	_, err := run(context.Background(), c.Conn, "BEGIN")
	switch {
	case err == nil && c.tx.failed:
		c.tx.gone = errRolledBack
	case err == nil:
		c.tx.gone = errGone
	case strings.Contains(err.Error(), "within a transaction"):
		c.tx.failed = false
	default:
		return fmt.Errorf("sqlstore: ask whether the transaction is still there: %w", err)
	}
	return c.tx.gone
}

// after is told the error of every statement and returns it. A transaction
// that was there before a statement, and is not after it has failed, was
// rolled back by the database: no statement that would commit comes this far.
// It asks at once; while there is no answer, check lets nothing else run.
func (c *writeConn) after(_ string, err error) error {
	if err != nil && !errors.Is(err, driver.ErrSkip) && c.tx != nil {
		c.tx.failed = true
		c.check() //nolint:errcheck // the next statement is told.
	}
	return err
}

// rows leaves a query's rows as they are: check asks before the next statement
// whatever they came to.
func (c *writeConn) rows(_ string, rows driver.Rows) driver.Rows { return rows }

// Commit commits. It is not cancelled by any context: a COMMIT that was cut
// off would have no known end. An error is an undoneError if it is known that
// nothing took effect.
func (t *writeTx) Commit() error {
	if t.gone != nil {
		t.Rollback() //nolint:errcheck // it was gone before.
		return t.gone
	}
	_, err := run(context.Background(), t.conn.Conn, "COMMIT")
	if err == nil {
		t.conn.tx = nil
		return nil
	}
	if t.Rollback() == nil && isRefusal(err) {
		return &undoneError{err}
	}
	return err
}

// isRefusal reports whether a COMMIT failed by the database's own decision: a
// constraint, or another connection in the way. After an error of the disk its
// frame may be in the log all the same, and be recovered by the next process
// that opens it. A driver that tells no codes leaves it open.
func isRefusal(err error) bool {
	const constraint = 19
	return isBusy(err) || primaryCode(err) == constraint
}

// isBusy reports whether something else is in the way of a statement.
func isBusy(err error) bool {
	const busy = 5
	return primaryCode(err) == busy
}

// primaryCode returns SQLite's code of an error without what it says more of
// it, or 0.
func primaryCode(err error) int {
	coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	if !ok {
		return 0
	}
	return coded.Code() & 0xff
}

// Rollback undoes the transaction. It is an error if somebody else ended it,
// and may have committed.
func (t *writeTx) Rollback() error {
	t.conn.tx = nil
	_, err := run(context.Background(), t.conn.Conn, "ROLLBACK")
	switch {
	case err != nil:
		t.conn.broken = true
		return err
	case t.gone != nil && !isUndone(t.gone):
		return t.gone
	}
	return nil
}
