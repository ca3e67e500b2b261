package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
)

// joint is the business transaction of one attempt.
//
// It begins with a savepoint of our own, which is released at the end: that
// fails if the transaction is not the one that was opened, because the handler
// ended it by some way of its own or the database rolled it back (R37). On a
// server both statements set limits as well, since the connection has those of
// the business.
type joint struct {
	store *Store
	claim semel.Claim

	mu      sync.Mutex
	base    context.Context // of the attempt: it ends with the work
	conn    *sql.Conn
	back    func() // gives conn back
	tx      *sql.Tx
	end     context.CancelFunc // rolls tx back, also while a statement runs
	unwatch func() bool
	closed  bool           // the work has returned
	lost    error          // why the transaction is gone before that
	failed  error          // why it could not be opened, when the work last asked
	effect  sqltext.Effect // of all that was sent in it
	limited bool           // the connection has a limit that is only the transaction's
}

var _ semel.Joint = (*joint)(nil)

const savepointName = "semel_joined"

type jointKey struct{}

// Join returns the transaction that the work of c may ask for with [Tx]. It
// opens nothing.
func (s *Store) Join(c semel.Claim) semel.Joint { return &joint{store: s, claim: c} }

// Context returns ctx with the joint in it.
func (j *joint) Context(ctx context.Context) context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.base = ctx
	return context.WithValue(ctx, jointKey{}, j)
}

// isOf reports whether ctx belongs to the attempt of the joint, and not to one
// that runs inside it.
func (j *joint) isOf(ctx context.Context) bool {
	j.mu.Lock()
	base := j.base
	j.mu.Unlock()
	return semel.SameAttempt(ctx, base)
}

// Opened reports whether the work asked for its transaction.
func (j *joint) Opened() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tx != nil || j.failed != nil
}

var errClosed = misuse("the transaction is closed: the handler that it belongs to has returned")

// openTimeout bounds the wait for the writer, which a handler may have taken
// itself, in a way that nothing can see.
const openTimeout = semel.DefaultStoreTimeout

const (
	// idleMargin is how much longer than the handler may take an idle
	// transaction is let be by a server, and mostIdle the most that one knows.
	idleMargin = 10 * time.Second
	mostIdle   = math.MaxInt32 * time.Millisecond
)

// idleLimit is how long the transaction may be idle until a server ends it: the
// handler may be calling others for as long as its context lasts (R17).
func (j *joint) idleLimit() time.Duration {
	left := semel.DefaultHandlerDeadline
	if deadline, ok := j.base.Deadline(); ok {
		left = time.Until(deadline)
	}
	return min(left+idleMargin, mostIdle)
}

// open opens the transaction at the first call. ctx bounds the wait for the
// writer, and not the transaction. Work that got none and ends as if it had is
// refused like one that has lost it (R12); it may ask again.
func (j *joint) open(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.state(); err != nil {
		return err
	}
	if j.tx != nil {
		return nil
	}
	if j.base.Err() != nil {
		j.failed = semel.NewError(semel.CodeCommitRefused, context.Cause(j.base), "sqlstore: no transaction is opened: the handler's context has ended")
		return j.failed
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	life, end := context.WithCancel(context.WithoutCancel(j.base))
	waited := context.AfterFunc(ctx, end)
	conn, back, tx, err := j.begin(ctx, life)
	if err == nil {
		j.limited = j.store.dialect.limitStays
		_, err = tx.ExecContext(life, j.store.dialect.opened(j.idleLimit()))
	}
	if !waited() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		end()
		if conn != nil {
			leave(conn, back, j.limited)
		}
		j.failed = unavailable(fmt.Errorf("open the business transaction: %w", err))
		return j.failed
	}
	j.conn, j.back, j.tx, j.end, j.failed = conn, back, tx, end, nil
	j.unwatch = context.AfterFunc(j.base, j.baseEnded)
	return nil
}

// begin begins a transaction that ends with life, on a connection that was
// waited for no longer than ctx lasts. One that was lost before is left behind.
func (j *joint) begin(ctx, life context.Context) (conn *sql.Conn, back func(), tx *sql.Tx, err error) {
	life = context.WithValue(life, watchedKey{}, true)
	for range mostTries {
		conn, back, err = j.store.handles.writeTurns.connOf(ctx, j.store.handles.Write)
		if err != nil {
			return nil, nil, nil, err
		}
		tx, err = conn.BeginTx(life, &j.store.business)
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
		back() // it is broken
	}
	return conn, back, tx, err
}

// giveBack gives the connection of a transaction that has ended to the pool, or
// closes it if something was left on it, or may have been by what was called, or
// if its limit was not taken back. It waits for a statement that was cut off.
func (j *joint) giveBack() {
	j.mu.Lock()
	conn, back, leaves := j.conn, j.back, j.mayLeave() || j.limited
	j.mu.Unlock()
	leave(conn, back, leaves)
}

// leave gives a connection to the pool, or closes it if something was left on
// it.
func leave(conn *sql.Conn, back func(), leaves bool) {
	if leaves {
		conn.Raw(func(any) error { return driver.ErrBadConn }) //nolint:errcheck // that closes it.
	}
	back()
}

// mayLeave reports whether the work has left something on the connection, or
// called what may have: it is not looked into.
func (j *joint) mayLeave() bool { return j.effect.Leaves != "" || j.effect.MayEnd }

// release sends the last statement.
func (j *joint) release(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, j.store.sql.release)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.limited = false
	}
	return err
}

// state is the error that the transaction answers with, if it is over.
func (j *joint) state() error {
	switch {
	case j.closed:
		return errClosed
	case j.lost != nil:
		return j.lost
	}
	return nil
}

// current returns the open transaction for a statement with an effect.
func (j *joint) current(e sqltext.Effect) (*sql.Tx, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.state(); err != nil {
		return nil, err
	}
	if e.Leaves != "" {
		if j.store.dialect.limits != "" {
			return nil, misuse("%s is refused behind a pooler: what it leaves on the server's connection comes to other clients", e.Leaves)
		}
		j.effect.Leaves = e.Leaves
	}
	j.effect.MayEnd = j.effect.MayEnd || e.MayEnd
	return j.tx, nil
}

// baseEnded undoes the transaction of work that is past its deadline or
// superseded, so that it does not keep all other writers waiting. Every later
// use fails with the reason (R12).
func (j *joint) baseEnded() {
	if j.lose() {
		j.giveBack()
	}
}

// lose ends the transaction before its time, if it has not ended.
func (j *joint) lose() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	j.lost = semel.NewError(semel.CodeCommitRefused, context.Cause(j.base), "the transaction was rolled back when the handler's context ended")
	j.end()
	return true
}

// close takes the transaction away from the work.
func (j *joint) close() (*sql.Tx, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.state(); err != nil {
		j.closed = true
		return nil, err
	}
	j.closed = true
	if j.failed != nil {
		return nil, refused(j.failed)
	}
	if j.tx == nil {
		return nil, misuse("there is no transaction to commit")
	}
	j.unwatch()
	return j.tx, nil
}

// Commit finishes the claim inside the transaction and commits. Only done can be
// committed: an attempt that ends otherwise has nothing to commit.
func (j *joint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if p.To != semel.StateDone {
		return semel.Held{}, misuse("only an end that is done is committed, and this one is %v", p.To)
	}
	tx, err := j.close()
	if err != nil {
		return semel.Held{}, err
	}
	defer j.giveBack()
	defer j.end()
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
	if err := j.release(ctx, tx); err != nil {
		err = fmt.Errorf("the business transaction ended before its time: %w", err)
		undone := j.errors().stays(err) && tx.Rollback() == nil
		if !undone && j.errors().ended(err) {
			return semel.Held{}, unavailable(err) // by whom, and how?
		}
		return semel.Held{}, refused(err) // COMMIT is never sent
	}
	if j.mayLeave() {
		for _, statement := range j.store.sql.clear {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return semel.Held{}, refused(err)
			}
		}
	}
	held, err := j.store.finishTx(ctx, tx, j.claim, p)
	switch {
	case err != nil:
		return semel.Held{}, refused(err) // nor here
	case held.Status != semel.HeldYes:
		return held, nil
	}
	// The driver's COMMIT may know no context but that of the transaction.
	defer context.AfterFunc(ctx, j.end)()
	if err := tx.Commit(); err != nil {
		if isUndone(err) || j.errors().refused(err) {
			return semel.Held{}, refused(err)
		}
		return semel.Held{}, unavailable(err)
	}
	return held, nil
}

func (j *joint) errors() *faults { return &j.store.dialect.errors }

func refused(err error) error {
	return semel.NewError(semel.CodeCommitRefused, err, "%s", semel.ErrCommitRefused.Text)
}

// forget takes the transaction away from the work, and reports whether there is
// none.
func (j *joint) forget() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	return j.tx == nil
}

// Rollback ends the transaction without effect. A server undoes it also if
// ROLLBACK does not reach it; what it does not say is that there was nothing to
// roll back, so the savepoint is asked for first.
func (j *joint) Rollback() error {
	if j.forget() {
		return nil
	}
	defer j.giveBack()
	j.unwatch()
	defer j.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.base), semel.DefaultStoreTimeout)
	defer cancel()
	err := j.release(ctx, j.tx)
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	if j.errors().stays(err) {
		err = nil // ROLLBACK tells
	}
	for _, err := range []error{err, j.tx.Rollback()} {
		if err != nil && !errors.Is(err, sql.ErrTxDone) && j.errors().ended(err) {
			return unavailable(err)
		}
	}
	return nil
}
