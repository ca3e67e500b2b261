package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tx returns the business transaction of the joined or atomic attempt that ctx
// belongs to. In joined mode the first call opens it; later calls return the
// same one. What it writes is committed together with the reply, or rolled
// back, after the handler has returned.
//
// Outside such an attempt, in an attempt of another mode inside one, and after
// the handler has returned, it is an error that matches semel.ErrTxMisuse. One that
// matches semel.ErrStoreUnavailable means that no connection was free in time
// (Config.MaxTxConns).
func Tx(ctx context.Context) (*JoinedTx, error) {
	j, ok := ctx.Value(jointKey{}).(*joint)
	if !ok {
		return nil, misuse("no joined or atomic attempt in this context: run the handler in one of those modes (semelhttp.Route.Mode, or semel.Call.Mode without HTTP), and pass on the context that it was given")
	}
	if !j.isOf(ctx) {
		return nil, misuse("the transaction in this context belongs to another attempt, around this one: run this one in joined mode too, or open the transaction outside it")
	}
	tx, err := j.open(ctx)
	if err != nil {
		return nil, err
	}
	return &JoinedTx{joint: j, tx: tx}, nil
}

// JoinedTx is a transaction that can neither commit nor outlive its handler.
// It is what sqlc calls a DBTX, and what pgx.BeginFunc takes to run a part of
// the work that may be undone alone. It refuses BEGIN, COMMIT, ROLLBACK and
// PREPARE TRANSACTION as statements. What it refuses, and whatever comes after
// the handler has returned, is an error that matches semel.ErrTxMisuse. As with any
// transaction of pgx, one statement is under way at a time, and rows are to be
// closed before the next.
//
// Once the transaction is gone (a serialization failure, a deadlock, a
// statement after one that had failed, a lost connection, the handler's
// deadline) every call fails, also if the first error was ignored, and nothing
// is committed (R12). A failed statement whose savepoint is rolled back at once
// does no harm.
//
// What a statement leaves on the connection (SET, a temporary table, LISTEN, a
// lock of the session) ends with the transaction: the connection is closed, and
// the next transaction opens another. SET LOCAL, ON COMMIT DROP and the locks of
// a transaction cost nothing. Behind a pooler, whose connections to the server
// are not closed, such a statement is refused.
type JoinedTx struct {
	joint *joint
	tx    pgx.Tx
}

// Exec executes a statement.
func (t *JoinedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.joint.use(sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.tx.Exec(ctx, sql, args...)
	t.joint.done(err)
	return tag, err
}

// Query runs a query. Close its rows before the next statement. An error is
// also that of its rows, as with pgx.
func (t *JoinedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.joint.use(sql); err != nil {
		return failedRows{err}, err
	}
	rows, err := t.tx.Query(ctx, sql, args...)
	if err != nil {
		t.joint.done(err)
		return failedRows{err}, err
	}
	return &openRows{Rows: rows, done: t.joint.done}, nil
}

// QueryRow runs a query for one row. Errors come from its Scan.
func (t *JoinedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.joint.use(sql); err != nil {
		return failedRow{err}
	}
	return &openRow{row: t.tx.QueryRow(ctx, sql, args...), done: t.joint.done}
}

// SendBatch sends all that is queued in one round trip. Close its results
// before the next statement.
func (t *JoinedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	queries := make([]string, len(b.QueuedQueries))
	for i, q := range b.QueuedQueries {
		queries[i] = q.SQL
	}
	if err := t.joint.use(queries...); err != nil {
		return failedBatch{err}
	}
	return &openBatch{BatchResults: t.tx.SendBatch(ctx, b), done: t.joint.done}
}

// CopyFrom writes many rows by PostgreSQL's copy protocol, and returns how
// many.
func (t *JoinedTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.joint.use(); err != nil {
		return 0, err
	}
	n, err := t.tx.CopyFrom(ctx, table, columns, rows)
	t.joint.done(err)
	return n, err
}

// Begin sets a savepoint. Commit of what it returns releases it, and commits
// nothing; Rollback undoes what came after it.
func (t *JoinedTx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.joint.use(); err != nil {
		return nil, err
	}
	tx, err := t.tx.Begin(ctx)
	t.joint.done(err)
	if err != nil {
		return nil, err
	}
	return &savepoint{JoinedTx: JoinedTx{joint: t.joint, tx: tx}}, nil
}

// savepoint is a part of the transaction that may be undone alone.
type savepoint struct{ JoinedTx }

var _ pgx.Tx = (*savepoint)(nil)

// Commit releases the savepoint.
func (s *savepoint) Commit(ctx context.Context) error { return s.end(ctx, s.tx.Commit) }

// Rollback undoes what came after the savepoint.
func (s *savepoint) Rollback(ctx context.Context) error { return s.end(ctx, s.tx.Rollback) }

func (s *savepoint) end(ctx context.Context, end func(context.Context) error) error {
	if err := s.joint.use(); err != nil {
		return err
	}
	err := end(ctx)
	s.joint.done(err)
	return err
}

// Prepare prepares a statement.
func (s *savepoint) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := s.joint.use(sql, "PREPARE"); err != nil {
		return nil, err
	}
	d, err := s.tx.Prepare(ctx, name, sql)
	s.joint.done(err)
	return d, err
}

// LargeObjects returns those of the transaction. They come by its connection
// without being looked at, also later, so that nobody is to have it afterwards.
func (s *savepoint) LargeObjects() pgx.LargeObjects {
	s.joint.doubt()
	return s.tx.LargeObjects()
}

// Conn returns none: a connection could commit.
func (s *savepoint) Conn() *pgx.Conn { return nil }
