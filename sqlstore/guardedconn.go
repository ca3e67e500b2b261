package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/semel-dev/semel"
)

// gate lets statements through to a connection while its transaction lasts.
type gate interface {
	// check is an error if the transaction is not there any more.
	check() error
	// after is told how a statement ended, and returns its error.
	after(query string, err error) error
	// rows returns the rows of a query so that after is told of their error.
	rows(query string, r driver.Rows) driver.Rows
}

// guardedConn is a connection whose statements all come through a gate, also
// the prepared ones (R12).
type guardedConn struct {
	plainConn

	gate gate
}

var (
	_ driver.ConnPrepareContext = (*guardedConn)(nil)
	_ driver.ExecerContext      = (*guardedConn)(nil)
	_ driver.QueryerContext     = (*guardedConn)(nil)
	_ driver.StmtExecContext    = (*guardedStmt)(nil)
	_ driver.StmtQueryContext   = (*guardedStmt)(nil)
	_ driver.NamedValueChecker  = (*guardedStmt)(nil)
)

var (
	errGone error = &goneError{semel.NewError(semel.CodeStoreUnavailable, nil,
		"sqlstore: the transaction is gone: the database ended it, as it does after a deadlock, when a statement is interrupted or the disk is full, "+
			"or a statement that it ran committed it")}

	// errRolledBack is errGone where nobody can have committed.
	errRolledBack error = &undoneError{errGone}
)

// goneError is the error of a transaction that somebody else has ended.
type goneError struct{ cause error }

func (e *goneError) Error() string { return e.cause.Error() }
func (e *goneError) Unwrap() error { return e.cause }

// undoneError is the error of a transaction of which it is known that nothing
// took effect.
type undoneError struct{ cause error }

func (e *undoneError) Error() string { return e.cause.Error() }
func (e *undoneError) Unwrap() error { return e.cause }

func isUndone(err error) bool {
	_, ok := errors.AsType[*undoneError](err)
	return ok
}

// PrepareContext prepares a statement.
func (c *guardedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := prepare(ctx, c.Conn, query)
	if err != nil {
		return nil, err
	}
	return &guardedStmt{Stmt: stmt, conn: c, query: query}, nil
}

// ExecContext executes a statement.
func (c *guardedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.gate.check(); err != nil {
		return nil, err
	}
	res, err := e.ExecContext(ctx, query, args)
	return res, c.gate.after(query, err)
}

// QueryContext runs a query.
func (c *guardedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.gate.check(); err != nil {
		return nil, err
	}
	rows, err := q.QueryContext(ctx, query, args)
	return c.watched(query, rows, err)
}

// watched returns what the gate makes of a query's rows and error.
func (c *guardedConn) watched(query string, rows driver.Rows, err error) (driver.Rows, error) {
	if err := c.gate.after(query, err); err != nil {
		return nil, err
	}
	return c.gate.rows(query, rows), nil
}

// guardedStmt is a statement that was prepared on a guardedConn.
type guardedStmt struct {
	driver.Stmt

	conn  *guardedConn
	query string
}

// ExecContext executes the statement.
func (s *guardedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.conn.gate.check(); err != nil {
		return nil, err
	}
	if e, ok := s.Stmt.(driver.StmtExecContext); ok {
		res, err := e.ExecContext(ctx, args)
		return res, s.conn.gate.after(s.query, err)
	}
	values, err := valuesOf(ctx, args)
	if err != nil {
		return nil, err
	}
	res, err := s.Stmt.Exec(values) //nolint:staticcheck // for a driver that has only this.
	return res, s.conn.gate.after(s.query, err)
}

// QueryContext runs the query.
func (s *guardedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.gate.check(); err != nil {
		return nil, err
	}
	if q, ok := s.Stmt.(driver.StmtQueryContext); ok {
		rows, err := q.QueryContext(ctx, args)
		return s.conn.watched(s.query, rows, err)
	}
	values, err := valuesOf(ctx, args)
	if err != nil {
		return nil, err
	}
	rows, err := s.Stmt.Query(values) //nolint:staticcheck // for a driver that has only this.
	return s.conn.watched(s.query, rows, err)
}

// CheckNamedValue converts an argument as the statement, or its connection,
// does.
func (s *guardedStmt) CheckNamedValue(v *driver.NamedValue) error {
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
