package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// wire is a driver around a server's, which sees what goes to the server, as
// many entries as there are round trips, and can make it fail.
type wire struct {
	base    driver.Driver
	rewrite func(statement string) string // of what is run instead

	mu     sync.Mutex
	seen   []string
	before func(statement string) error // instead of the statement
	after  func(statement string) error // although it took effect
}

// newWire registers a wire around the driver called base and returns it with
// the name to open it by.
func newWire(t *testing.T, base string) (*wire, string) {
	t.Helper()
	db, err := sql.Open(base, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := &wire{base: db.Driver(), rewrite: func(statement string) string { return statement }}
	name := fmt.Sprintf("wire-%d-%s", taps.Add(1), t.Name())
	sql.Register(name, w)
	return w, name
}

func (w *wire) fail(before, after func(statement string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = before, after
}

// during returns what f sent.
func (w *wire) during(f func()) []string {
	w.mu.Lock()
	from := len(w.seen)
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[from:])
}

// send notes a statement and runs it between the two functions.
func (w *wire) send(statement string, run func() error) error {
	w.mu.Lock()
	w.seen = append(w.seen, statement)
	before, after := w.before, w.after
	w.mu.Unlock()
	if before != nil {
		if err := before(statement); err != nil {
			return err
		}
	}
	err := run()
	if err == nil && after != nil {
		err = after(statement)
	}
	if errors.Is(err, driver.ErrSkip) { // nothing was sent
		w.mu.Lock()
		w.seen = w.seen[:len(w.seen)-1]
		w.mu.Unlock()
	}
	return err
}

// Open opens a connection.
func (w *wire) Open(dsn string) (driver.Conn, error) {
	conn, err := w.base.Open(dsn)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(fullConn)
	if !ok {
		return nil, errors.New("the driver's connection lacks a method")
	}
	return &wireConn{fullConn: full, wire: w}, nil
}

// fullConn is what the connections of the drivers under test all offer.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Pinger
}

type wireConn struct {
	fullConn

	wire *wire
}

// IsValid asks the connection, if it knows.
func (c *wireConn) IsValid() bool {
	v, ok := c.fullConn.(driver.Validator)
	return !ok || v.IsValid()
}

// BeginTx begins a transaction.
func (c *wireConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	err = c.wire.send("BEGIN", func() error {
		tx, err = c.fullConn.BeginTx(ctx, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &wireTx{Tx: tx, wire: c.wire}, nil
}

// PrepareContext prepares a statement.
func (c *wireConn) PrepareContext(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	err = c.wire.send("PREPARE "+query, func() error {
		stmt, err = c.fullConn.PrepareContext(ctx, c.wire.rewrite(query))
		return err
	})
	if err != nil {
		return nil, err
	}
	full, ok := stmt.(fullStmt)
	if !ok {
		return nil, errors.New("the driver's statement lacks a method")
	}
	return &wireStmt{fullStmt: full, query: query, wire: c.wire}, nil
}

// ExecContext executes a statement.
func (c *wireConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.wire.send(query, func() error {
		res, err = c.fullConn.ExecContext(ctx, c.wire.rewrite(query), args)
		return err
	})
	return res, err
}

// QueryContext runs a query.
func (c *wireConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.wire.send(query, func() error {
		rows, err = c.fullConn.QueryContext(ctx, c.wire.rewrite(query), args)
		return err
	})
	return rows, err
}

type wireTx struct {
	driver.Tx

	wire *wire
}

// Commit commits.
func (t *wireTx) Commit() error { return t.wire.send("COMMIT", t.Tx.Commit) }

// Rollback rolls back.
func (t *wireTx) Rollback() error { return t.wire.send("ROLLBACK", t.Tx.Rollback) }

// fullStmt is what the statements of the drivers under test all offer.
type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type wireStmt struct {
	fullStmt

	query string
	wire  *wire
}

// ExecContext executes the statement.
func (s *wireStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.wire.send(s.query, func() error {
		res, err = s.fullStmt.ExecContext(ctx, args)
		return err
	})
	return res, err
}

// QueryContext runs the query.
func (s *wireStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.wire.send(s.query, func() error {
		rows, err = s.fullStmt.QueryContext(ctx, args)
		return err
	})
	return rows, err
}

// CheckNamedValue converts an argument as the statement, or its connection,
// does.
func (s *wireStmt) CheckNamedValue(v *driver.NamedValue) error {
	if c, ok := s.fullStmt.(driver.NamedValueChecker); ok {
		return c.CheckNamedValue(v)
	}
	return driver.ErrSkip
}
