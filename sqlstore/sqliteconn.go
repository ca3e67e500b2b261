package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-dev/semel"
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
	driver.Conn

	tx     *writeTx // nil outside one
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
	_ driver.StmtExecContext    = (*writeStmt)(nil)
	_ driver.StmtQueryContext   = (*writeStmt)(nil)
	_ driver.NamedValueChecker  = (*writeStmt)(nil)
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
	c.tx = &writeTx{conn: c}
	return c.tx, nil
}

// writeTx is the transaction of its connection.
type writeTx struct {
	conn   *writeConn
	failed bool  // a statement of it did, and nothing else has run since
	gone   error // that it is not there any more
}

var (
	errGone error = semel.NewError(semel.CodeStoreUnavailable, nil,
		"sqlstore: the transaction is gone: the database ended it, as it does when a statement is interrupted or the disk is full")

	// errRolledBack is errGone where nobody can have committed.
	errRolledBack error = &undoneError{errGone}
)

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
func (c *writeConn) after(err error) error {
	if err != nil && !errors.Is(err, driver.ErrSkip) && c.tx != nil {
		c.tx.failed = true
		c.check() //nolint:errcheck // the next statement is told.
	}
	return err
}

// undoneError is the error of a transaction of which it is known that nothing
// took effect.
type undoneError struct{ cause error }

func (e *undoneError) Error() string { return e.cause.Error() }
func (e *undoneError) Unwrap() error { return e.cause }

func isUndone(err error) bool {
	_, ok := errors.AsType[*undoneError](err)
	return ok
}

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
	const primary, busy, constraint = 0xff, 5, 19
	coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	return ok && (coded.Code()&primary == busy || coded.Code()&primary == constraint)
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

// PrepareContext prepares a statement.
func (c *writeConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := prepare(ctx, c.Conn, query)
	if err != nil {
		return nil, err
	}
	return &writeStmt{Stmt: stmt, conn: c}, nil
}

// ExecContext executes a statement.
func (c *writeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	res, err := e.ExecContext(ctx, query, args)
	return res, c.after(err)
}

// QueryContext runs a query.
func (c *writeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	rows, err := q.QueryContext(ctx, query, args)
	return rows, c.after(err)
}

// writeStmt is a statement that was prepared on a writeConn.
type writeStmt struct {
	driver.Stmt

	conn *writeConn
}

// ExecContext executes the statement.
func (s *writeStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.check(); err != nil {
		return nil, err
	}
	if e, ok := s.Stmt.(driver.StmtExecContext); ok {
		res, err := e.ExecContext(ctx, args)
		return res, s.conn.after(err)
	}
	values, err := valuesOf(ctx, args)
	if err != nil {
		return nil, err
	}
	res, err := s.Stmt.Exec(values) //nolint:staticcheck // for a driver that has only this.
	return res, s.conn.after(err)
}

// QueryContext runs the query.
func (s *writeStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.check(); err != nil {
		return nil, err
	}
	if q, ok := s.Stmt.(driver.StmtQueryContext); ok {
		rows, err := q.QueryContext(ctx, args)
		return rows, s.conn.after(err)
	}
	values, err := valuesOf(ctx, args)
	if err != nil {
		return nil, err
	}
	rows, err := s.Stmt.Query(values) //nolint:staticcheck // for a driver that has only this.
	return rows, s.conn.after(err)
}

// CheckNamedValue converts an argument as the statement, or its connection,
// does.
func (s *writeStmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// valuesOf is what a driver gets that knows neither contexts nor names.
func valuesOf(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		if arg.Name != "" {
			return nil, errors.New("sqlstore: the driver has no named parameters")
		}
		values[i] = arg.Value
	}
	return values, ctx.Err()
}

// The rest is the driver's own, where it has it.

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
