package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
)

// acquire takes a connection for one call. It leaves the statement its whole
// limit: one that was sent later could still be at work when the caller has
// given up (R15).
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if last := deadline.Add(-statementLimit); time.Now().Before(last) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, last)
			defer cancel()
		}
	}
	conn, err := s.own.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("no connection: %w", err)
	}
	return conn, nil
}

// one runs a statement that is a transaction of its own and has one row.
func (s *Store) one(ctx context.Context, read func(pgx.Row) error, statement string, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if len(s.local) == 0 {
		return read(conn.QueryRow(ctx, statement, args...))
	}
	return s.inBatch(ctx, conn, func(res pgx.BatchResults) error { return read(res.QueryRow()) }, statement, args...)
}

// many is one for a statement with any number of rows.
func (s *Store) many(ctx context.Context, read func(pgx.CollectableRow) error, statement string, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	each := func(rows pgx.Rows, err error) error {
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (struct{}, error) { return struct{}{}, read(from) })
		return err
	}
	if len(s.local) == 0 {
		return each(conn.Query(ctx, statement, args...))
	}
	return s.inBatch(ctx, conn, func(res pgx.BatchResults) error { return each(res.Query()) }, statement, args...)
}

// exec is one for a statement without rows, and returns how many it wrote.
func (s *Store) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var tag pgconn.CommandTag
	if len(s.local) == 0 {
		tag, err = conn.Exec(ctx, statement, args...)
		return tag.RowsAffected(), err
	}
	err = s.inBatch(ctx, conn, func(res pgx.BatchResults) (err error) {
		tag, err = res.Exec()
		return err
	}, statement, args...)
	return tag.RowsAffected(), err
}

// inBatch runs a statement behind a pooler: its limits go with it.
func (s *Store) inBatch(ctx context.Context, conn *pgxpool.Conn, read func(pgx.BatchResults) error, statement string, args ...any) error {
	b := &pgx.Batch{}
	s.queueBegin(b)
	b.Queue(statement, args...)
	b.Queue("COMMIT")
	return send(ctx, conn.Conn(), b, s.skipBegin, read, committed)
}

// transition changes a record that was just read, by the rules of the root
// package, and reports whether it has to be written and what to log.
type transition func(*semel.Record) (changed bool, audit *semel.AuditEntry)

// errLost is a row that is not what was read under its lock.
var errLost = errors.New("the record changed under its lock")

// change runs one transition in a transaction of its own.
func (s *Store) change(ctx context.Context, scope, key string, apply transition) error {
	if err := s.changeLocked(ctx, scope, key, apply); err != nil {
		return unavailable(err)
	}
	return nil
}

// changeLocked takes one round trip that locks and reads, and one that writes and
// commits.
func (s *Store) changeLocked(ctx context.Context, scope, key string, apply transition) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.giveBack(ctx, conn)
	r, err := s.lock(ctx, conn.Conn(), scope, key)
	if err != nil {
		return err
	}
	changed, audit := apply(&r.record)
	if !changed {
		return nil // giveBack rolls back
	}
	b := &pgx.Batch{}
	steps, err := s.queueChange(b, &r, audit)
	if err != nil {
		return err
	}
	b.Queue("COMMIT")
	return send(ctx, conn.Conn(), b, append(steps, committed)...)
}

// lock begins a transaction and reads the row of a key under its lock.
func (s *Store) lock(ctx context.Context, conn *pgx.Conn, scope, key string) (r row, err error) {
	b := &pgx.Batch{}
	s.queueBegin(b)
	b.Queue(s.sql.lock, []byte(scope), []byte(key))
	err = send(ctx, conn, b, s.skipBegin, func(res pgx.BatchResults) (err error) {
		r, err = scan(res.QueryRow())
		return err
	})
	return r, err
}

// queueChange queues what writes a row that is locked, and its line in the log.
func (s *Store) queueChange(b *pgx.Batch, r *row, audit *semel.AuditEntry) ([]step, error) {
	if err := s.queueSave(b, r); err != nil {
		return nil, err
	}
	if audit == nil {
		return []step{wroteOne}, nil
	}
	s.queueAudit(b, audit)
	return []step{wroteOne, wroteOne}, nil
}

func (s *Store) queueSave(b *pgx.Batch, r *row) error {
	statement, args, err := r.save("", s.sql.save)
	if err != nil {
		return err
	}
	b.Queue(statement, args...)
	return nil
}

// begin opens a transaction in which each statement sees what is committed
// when it starts.
const begin = "BEGIN ISOLATION LEVEL READ COMMITTED"

// queueBegin queues what every transaction of the store's own begins with.
func (s *Store) queueBegin(b *pgx.Batch) {
	b.Queue(begin)
	for _, setting := range s.local {
		b.Queue(setting)
	}
}

// skipBegin takes the answers to queueBegin.
func (s *Store) skipBegin(res pgx.BatchResults) error {
	for range 1 + len(s.local) {
		if err := ran(res); err != nil {
			return err
		}
	}
	return nil
}

// step takes the answer to one part of a batch.
type step func(pgx.BatchResults) error

func ran(res pgx.BatchResults) error {
	_, err := res.Exec()
	return err
}

func wroteOne(res pgx.BatchResults) error {
	tag, err := res.Exec()
	if err == nil && tag.RowsAffected() != 1 {
		err = errLost
	}
	return err
}

// errRolledBack is the answer to the COMMIT of a transaction in which a
// statement had failed: no error, and nothing is committed (25P02).
var errRolledBack = errors.New("COMMIT was answered with ROLLBACK: a statement before it had failed")

func committed(res pgx.BatchResults) error {
	tag, err := res.Exec()
	if err == nil && tag.String() != "COMMIT" {
		err = errRolledBack
	}
	return err
}

// sender is a *pgx.Conn, or a pgx.Tx.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// send sends a batch in one round trip and takes the answers until one fails.
func send(ctx context.Context, conn sender, b *pgx.Batch, steps ...step) error {
	res := conn.SendBatch(ctx, b)
	var err error
	for _, take := range steps {
		if err = take(res); err != nil {
			break
		}
	}
	if closing := res.Close(); err == nil {
		err = closing
	}
	return err
}

// giveBack rolls back what is open on a connection and gives it to the pool,
// which closes one that is still in a transaction.
func (s *Store) giveBack(ctx context.Context, conn *pgxpool.Conn) {
	if !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() != idle {
		conn.Exec(ctx, "ROLLBACK") //nolint:errcheck // a connection that cannot is closed.
	}
	conn.Release()
}

// What a session says of its transaction (PgConn.TxStatus).
const (
	idle    = 'I'
	inTx    = 'T'
	aborted = 'E'
)
