package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
)

// plainConn is a driver's connection with all that database/sql may ask of one
// passed on, where the driver has it, so that what is built on it takes nothing
// away.
type plainConn struct {
	driver.Conn

	broken bool // it is not to be used again
}

var (
	_ driver.ConnBeginTx       = (*plainConn)(nil)
	_ driver.NamedValueChecker = (*plainConn)(nil)
	_ driver.Pinger            = (*plainConn)(nil)
	_ driver.SessionResetter   = (*plainConn)(nil)
	_ driver.Validator         = (*plainConn)(nil)
)

// Unwrap returns the driver's own connection.
func (c *plainConn) Unwrap() driver.Conn { return c.Conn }

// BeginTx begins a transaction.
func (c *plainConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	b, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, errors.New("sqlstore: the driver has no BeginTx")
	}
	return b.BeginTx(ctx, opts)
}

// IsValid tells database/sql whether to keep the connection.
func (c *plainConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !c.broken && (!ok || v.IsValid())
}

// ResetSession is called before the connection is used again.
func (c *plainConn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// CheckNamedValue converts an argument.
func (c *plainConn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Ping asks whether the connection lives.
func (c *plainConn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}
