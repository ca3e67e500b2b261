package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
)

// cachingConn is a connection of the store's own whose driver prepares each
// statement with arguments anew, in a round trip of its own. It keeps what it
// has prepared: the store's statements are few, and always the same.
type cachingConn struct {
	plainConn

	prepared map[string]driver.Stmt
}

var (
	_ driver.ExecerContext  = (*cachingConn)(nil)
	_ driver.QueryerContext = (*cachingConn)(nil)
)

func newCachingConn(conn driver.Conn) driver.Conn {
	return &cachingConn{plainConn: plainConn{Conn: conn}, prepared: map[string]driver.Stmt{}}
}

// ExecContext executes a statement.
func (c *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if e, ok := c.Conn.(driver.ExecerContext); ok {
		if res, err := e.ExecContext(ctx, query, args); !errors.Is(err, driver.ErrSkip) {
			return res, err
		}
	}
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	e, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return e.ExecContext(ctx, args)
}

// QueryContext runs a query.
func (c *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if q, ok := c.Conn.(driver.QueryerContext); ok {
		if rows, err := q.QueryContext(ctx, query, args); !errors.Is(err, driver.ErrSkip) {
			return rows, err
		}
	}
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return q.QueryContext(ctx, args)
}

func (c *cachingConn) stmt(ctx context.Context, query string) (driver.Stmt, error) {
	if stmt, ok := c.prepared[query]; ok {
		return stmt, nil
	}
	stmt, err := prepare(ctx, c.Conn, query)
	if err == nil {
		c.prepared[query] = stmt
	}
	return stmt, err
}
