package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/semel-dev/semel"
)

// writeConn is the connection of Handles.Write. Its transactions take the
// write lock at once, and one that did not end for certain takes its
// connection with it: closing it rolls back whatever is still open.
type writeConn struct {
	driver.Conn

	broken bool
}

var (
	_ driver.ConnBeginTx        = (*writeConn)(nil)
	_ driver.ConnPrepareContext = (*writeConn)(nil)
	_ driver.ExecerContext      = (*writeConn)(nil)
	_ driver.QueryerContext     = (*writeConn)(nil)
	_ driver.NamedValueChecker  = (*writeConn)(nil)
	_ driver.Pinger             = (*writeConn)(nil)
	_ driver.SessionResetter    = (*writeConn)(nil)
	_ driver.Validator          = (*writeConn)(nil)
	_ driver.Tx                 = (*writeTx)(nil)
)

// Unwrap returns the driver's own connection.
func (c *writeConn) Unwrap() driver.Conn { return c.Conn }

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
	return &writeTx{conn: c}, nil
}

// writeTx ends the transaction of its connection.
type writeTx struct{ conn *writeConn }

// Commit commits. It is not cancelled by any context: a COMMIT that was cut
// off would have no known end. An error matches semel.ErrCommitRefused if the
// transaction was still there to be rolled back, and so is known undone.
func (t *writeTx) Commit() error {
	_, err := run(context.Background(), t.conn.Conn, "COMMIT")
	if err == nil {
		return nil
	}
	if t.Rollback() == nil {
		return &semel.Error{Code: semel.CodeCommitRefused, Text: semel.ErrCommitRefused.Text, Err: err}
	}
	return err
}

// Rollback undoes the transaction.
func (t *writeTx) Rollback() error {
	_, err := run(context.Background(), t.conn.Conn, "ROLLBACK")
	if err != nil {
		t.conn.broken = true
	}
	return err
}

// IsValid tells database/sql whether to keep the connection.
func (c *writeConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !c.broken && (!ok || v.IsValid())
}

// ResetSession is called before the connection is used again.
func (c *writeConn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// The rest is the driver's own, where it has it.

// PrepareContext prepares a statement.
func (c *writeConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return prepare(ctx, c.Conn, query)
}

// ExecContext executes a statement.
func (c *writeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if e, ok := c.Conn.(driver.ExecerContext); ok {
		return e.ExecContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// QueryContext runs a query.
func (c *writeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if q, ok := c.Conn.(driver.QueryerContext); ok {
		return q.QueryContext(ctx, query, args)
	}
	return nil, driver.ErrSkip
}

// CheckNamedValue converts an argument.
func (c *writeConn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Ping asks whether the connection lives.
func (c *writeConn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}
