package integration

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
)

// tap is a driver around the real one that sees every statement and can make
// it fail. It offers only what every driver must, so that what passes with it
// needs nothing of modernc.org/sqlite.
type tap struct {
	mu     sync.Mutex
	seen   []string
	before func(query string) error // instead of the statement
	after  func(query string) error // although it took effect
	swaps  map[string]string        // what is run instead of a statement
}

// taps counts them, since a name is registered for good.
var taps atomic.Int64

// newTap registers a tap and returns it with the name to open it by.
func newTap(t *testing.T) (*tap, string) {
	t.Helper()
	d := &tap{}
	name := fmt.Sprintf("tap-%d-%s", taps.Add(1), t.Name())
	sql.Register(name, d)
	return d, name
}

func (d *tap) fail(before, after func(query string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before, d.after = before, after
}

// swap makes the tap run another statement instead of one.
func (d *tap) swap(query, instead string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swaps = map[string]string{query: instead}
}

func (d *tap) statements() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

// see notes a statement and returns what to run instead of it and after it.
func (d *tap) see(query string) (runs string, before, after func(query string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, query)
	runs = query
	if instead, ok := d.swaps[query]; ok {
		runs = instead
	}
	return runs, d.before, d.after
}

// Open opens a connection.
func (d *tap) Open(dsn string) (driver.Conn, error) {
	base, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := base.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &tapConn{Conn: conn, tap: d}, nil
}

type tapConn struct {
	driver.Conn

	tap *tap
}

// Prepare prepares a statement that fails when the tap says so.
func (c *tapConn) Prepare(query string) (driver.Stmt, error) {
	runs, before, after := c.tap.see(query)
	if before != nil {
		if err := before(query); err != nil {
			return nil, err
		}
	}
	stmt, err := c.Conn.Prepare(runs)
	if err != nil {
		return nil, err
	}
	return &tapStmt{Stmt: stmt, query: query, after: after}, nil
}

type tapStmt struct {
	driver.Stmt

	query string
	after func(query string) error
}

// ran is the error of a statement that took effect.
func (s *tapStmt) ran() error {
	if s.after == nil {
		return nil
	}
	return s.after(s.query)
}

// Exec executes the statement.
func (s *tapStmt) Exec(args []driver.Value) (driver.Result, error) {
	res, err := s.Stmt.Exec(args) //nolint:staticcheck // a driver may have no more.
	if err == nil {
		err = s.ran()
	}
	return res, err
}

// Query runs the query.
func (s *tapStmt) Query(args []driver.Value) (driver.Rows, error) {
	rows, err := s.Stmt.Query(args) //nolint:staticcheck // a driver may have no more.
	if err != nil {
		return nil, err
	}
	if err := s.ran(); err != nil {
		rows.Close() //nolint:errcheck // the error below is the one that matters.
		return nil, err
	}
	return rows, nil
}
