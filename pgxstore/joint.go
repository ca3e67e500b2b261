package pgxstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
)

var _ semel.Joiner = (*Store)(nil)

// joint is the business transaction of one attempt.
//
// When it begins it is marked by a setting that ends with it, and COMMIT is
// sent together with a statement that fails where the mark is missing: a
// transaction that the handler ended by some way of its own, and began again,
// is not taken for the one that was opened (R37).
type joint struct {
	store *Store
	claim semel.Claim
	// ends returns the statement that ends the claim in the transaction.
	ends func(p semel.FinishParams) (statement string, args []any, err error)

	opening sync.Mutex

	mu      sync.Mutex
	base    context.Context // of the attempt: it ends with the work
	conn    *pgxpool.Conn
	tx      pgx.Tx
	unwatch func() bool
	using   bool  // a statement is under way, or its rows are open
	leaves  bool  // something that outlives the transaction
	closed  bool  // the work has returned
	lost    error // why the transaction is gone before that
	failed  error // why it could not be opened, when the work last asked
}

var _ semel.Joint = (*joint)(nil)

type jointKey struct{}

// Join returns the transaction that the work of c may ask for with [Tx]. It
// opens nothing.
func (s *Store) Join(c semel.Claim) semel.Joint {
	j := &joint{store: s, claim: c}
	j.ends = j.endClaim
	return j
}

// Context returns ctx with the joint in it.
func (j *joint) Context(ctx context.Context) context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.base = ctx
	j.watch()
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

// What a transaction that is over answers with.
var (
	errClosed = misuse("the transaction is closed: the handler that it belongs to has returned")
	errInUse  = misuse("the transaction is in use: rows, a row or the results of a batch are not closed, or another goroutine uses it")
	errEnded  = errors.New("the transaction has ended before its time: the handler, or something that it called, committed it or rolled it back")
)

const (
	// openTimeout bounds the wait for a connection, which other handlers may
	// have.
	openTimeout = semel.DefaultStoreTimeout
	// idleMargin is how much longer than the handler may take an idle
	// transaction is let be by the server, and mostIdle the most that it knows.
	idleMargin = 10 * time.Second
	mostIdle   = math.MaxInt32 * time.Millisecond
	// endTimeout bounds a rollback.
	endTimeout = semel.DefaultStoreTimeout
)

// open opens the transaction at the first call. ctx bounds the wait for a
// connection, and not the transaction. Work that got none and ends as if it had
// is refused like one that has lost it (R12); it may ask again.
func (j *joint) open(ctx context.Context) (pgx.Tx, error) {
	j.opening.Lock()
	defer j.opening.Unlock()
	tx, base, err := j.state()
	if tx != nil || err != nil {
		return tx, err
	}
	tx, err = j.openUnder(ctx, base)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = err
	return tx, err
}

// openUnder opens a transaction that ends with base.
func (j *joint) openUnder(ctx, base context.Context) (pgx.Tx, error) {
	if base.Err() != nil {
		return nil, semel.NewError(semel.CodeCommitRefused, context.Cause(base), "pgxstore: no transaction is opened: the handler's context has ended")
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	limit := semel.DefaultHandlerDeadline
	if deadline, ok := base.Deadline(); ok {
		limit = time.Until(deadline)
	}
	conn, err := j.store.tx.Acquire(ctx)
	var tx pgx.Tx
	if err == nil {
		tx, err = j.begin(ctx, conn, pgx.TxOptions{}, limit, &pgx.Batch{})
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("open the business transaction: %w", err))
	}
	return tx, nil
}

// setUp marks a transaction, and has the server end it if the handler's process
// is frozen or gone, unless the server has a limit already (R17).
const setUp = `SELECT pg_catalog.set_config('semel.joint', $1::text, true), pg_catalog.set_config('idle_in_transaction_session_timeout',
	CASE pg_catalog.current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN $2::text ELSE pg_catalog.current_setting('idle_in_transaction_session_timeout') END, true)`

// begin opens the transaction on conn, which it gives back where it fails,
// together with what else is to be asked in the same round trip, which steps
// take the answers to.
func (j *joint) begin(ctx context.Context, conn *pgxpool.Conn, how pgx.TxOptions, limit time.Duration, also *pgx.Batch, steps ...step) (pgx.Tx, error) {
	b := &pgx.Batch{}
	b.BeginTx(how)
	b.Queue(setUp, j.mark(), milliseconds(min(limit+idleMargin, mostIdle)))
	b.QueuedQueries = append(b.QueuedQueries, also.QueuedQueries...)
	var tx pgx.Tx
	steps = append([]step{ran, ran}, append(steps, func(res pgx.BatchResults) error {
		tx = res.Tx()
		return nil
	})...)
	err := send(ctx, conn.Conn(), b, steps...)
	if err == nil {
		err = j.adopt(conn, tx)
	}
	if err != nil {
		j.store.giveBack(ctx, conn)
		return nil, err
	}
	return tx, nil
}

// mark is what the transaction is known by.
func (j *joint) mark() string { return hex.EncodeToString(j.claim.Token[:]) }

// adopt takes an open transaction for the joint's.
func (j *joint) adopt(conn *pgxpool.Conn, tx pgx.Tx) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	j.conn, j.tx = conn, tx
	j.watch()
	return nil
}

// watch has the transaction end with the work.
func (j *joint) watch() {
	if j.tx != nil && j.base != nil {
		j.unwatch = context.AfterFunc(j.base, j.baseEnded)
	}
}

// state returns the transaction if it is open, and the error that it answers
// with if it is over.
func (j *joint) state() (pgx.Tx, context.Context, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tx, j.base, j.over()
}

func (j *joint) over() error {
	switch {
	case j.closed:
		return errClosed
	case j.lost != nil:
		return j.lost
	}
	return nil
}

// use lets one statement, or some, begin. done ends it.
func (j *joint) use(queries ...string) error {
	leaves := ""
	for _, query := range queries {
		effect := sqltext.PostgreSQL.Look(query)
		if effect.Refused != "" {
			return misuse("%s", effect.Refused)
		}
		leaves = cmp.Or(leaves, effect.Leaves)
	}
	return j.useLeaving(leaves)
}

// useLeaving is use for a statement that leaves something on the connection, if
// it has a name.
func (j *joint) useLeaving(statement string) error {
	if statement != "" && len(j.store.local) > 0 {
		return misuse("%s is refused behind a pooler: what it leaves on the server's connection comes to other clients", statement)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.over(); err != nil {
		return err
	}
	if j.using {
		return errInUse
	}
	j.using = true
	j.leaves = j.leaves || statement != ""
	return nil
}

// doubt has the connection closed after the transaction.
func (j *joint) doubt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.leaves = true
}

// done looks at what a statement has done to the transaction (R12).
func (j *joint) done(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.using = false
	if j.lost != nil || j.closed {
		return
	}
	switch conn := j.conn.Conn(); {
	case conn.IsClosed():
		j.lost = semel.NewError(semel.CodeCommitRefused, err, "the connection of the transaction is lost")
	case conn.PgConn().TxStatus() == idle:
		j.lost = semel.NewError(semel.CodeTxMisuse, errEnded, "pgxstore: the transaction cannot go on")
	case hasState(err, stateSerialization, stateDeadlock, stateAborted):
		j.lost = semel.NewError(semel.CodeCommitRefused, err, "the transaction cannot go on")
	}
}

// baseEnded undoes the transaction of work that is past its deadline or
// superseded, so that it holds no lock any longer. Every later use fails with
// the reason (R12).
func (j *joint) baseEnded() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	if j.lost == nil {
		j.lost = semel.NewError(semel.CodeCommitRefused, context.Cause(j.base), "the transaction was rolled back when the handler's context ended")
	}
	if j.using {
		// The server does not notice the loss of the connection while it works.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		j.conn.Conn().PgConn().CancelRequest(ctx) //nolint:errcheck // it is a hint.
	}
	j.cut()
}

// cut breaks the connection, also under a statement that another goroutine
// waits for: the server then rolls back.
func (j *joint) cut() { j.conn.Conn().PgConn().Conn().Close() } //nolint:errcheck // it is broken.

// kill breaks the connection and has the pool forget it, which it would not if
// the transaction has ended and nothing is under way.
func (j *joint) kill() {
	j.cut()
	if !j.using {
		j.conn.Conn().Close(context.Background()) //nolint:errcheck // it is broken.
	}
	j.conn.Release()
}

// close takes the transaction away from the work. Where it returns no error
// the connection is the caller's to release.
func (j *joint) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.over()
	switch {
	case j.closed:
		return err
	case j.tx == nil:
		j.closed = true
		if j.failed != nil {
			return j.failed
		}
		return misuse("there is no transaction to commit")
	}
	j.closed = true
	if j.unwatch != nil {
		j.unwatch()
	}
	if err == nil && j.using {
		err = errInUse
	}
	if err != nil {
		j.kill()
	}
	return err
}

// giveBack ends what is open and gives the connection to the pool, or closes it
// if the work has left something on it.
func (j *joint) giveBack(ctx context.Context) {
	if j.leaves {
		j.conn.Conn().Close(ctx) //nolint:errcheck // the server rolls back.
	}
	j.store.giveBack(ctx, j.conn)
}

// Commit finishes the claim inside the transaction and commits, in one round
// trip. Only done can be committed: an attempt that ends otherwise has nothing
// to commit.
func (j *joint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if err := j.closeFor(p); err != nil {
		return semel.Held{}, err
	}
	defer j.giveBack(ctx)
	if status := j.conn.Conn().PgConn().TxStatus(); status != inTx {
		return semel.Held{}, refused(errRolledBack)
	}
	return j.endAndCommit(ctx, p)
}

// closeFor takes the transaction away from the work to commit p in it. Its
// errors say whether the transaction is known to be undone.
func (j *joint) closeFor(p semel.FinishParams) error {
	if p.To != semel.StateDone {
		return misuse("only an end that is done is committed, and this one is %v", p.To)
	}
	switch err := j.close(); {
	case errors.Is(err, errEnded):
		return unavailable(errEnded)
	case err != nil:
		return refused(err) // COMMIT is never sent
	}
	return nil
}

// endAndCommit ends the claim in the transaction that is open and commits it,
// in one round trip.
func (j *joint) endAndCommit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	statement, args, err := j.ends(p)
	if err != nil {
		return semel.Held{}, refused(err)
	}
	b := &pgx.Batch{}
	b.Queue(j.store.ending())
	b.Queue(statement, args...)
	b.Queue("COMMIT")
	err = send(ctx, j.conn.Conn(), b, ran, ran, committed)
	switch {
	case err == nil:
		return semel.Held{Status: semel.HeldYes, State: semel.StateDone}, nil
	case hasState(err, stateNotHeld):
		return j.whyNotHeld(ctx, p)
	case hasState(err, stateNotOurs):
		j.doubt()
		return semel.Held{}, unavailable(errEnded)
	case errors.Is(err, errRolledBack), isRefusal(err):
		return semel.Held{}, refused(err)
	}
	return semel.Held{}, unavailable(err)
}

// whyNotHeld says what came in between. What was written is undone.
func (j *joint) whyNotHeld(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	rec, err := j.store.Get(ctx, j.claim.Scope, j.claim.Key)
	if err != nil {
		return semel.Held{}, refused(err)
	}
	held, changed := rec.Finish(j.claim, p)
	switch {
	case held.Status != semel.HeldYes:
		return held, nil
	case changed:
		return semel.Held{}, refused(errLost)
	}
	// The claim has its end already, and this transaction is no part of it.
	return semel.Held{Status: semel.HeldFinal, State: held.State}, nil
}

// Rollback ends the transaction without effect, and asks in the same round trip
// whether it is the one that was opened, unless it is aborted and cannot tell.
func (j *joint) Rollback() error {
	err := j.close()
	if errors.Is(err, errEnded) {
		return unavailable(errEnded)
	}
	if err != nil {
		return nil // nothing was opened, or the connection is broken, or it is over
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	defer j.giveBack(ctx)
	if j.conn.Conn().PgConn().TxStatus() != inTx {
		return nil
	}
	ours := true
	b := &pgx.Batch{}
	b.Queue(isOurs, j.mark())
	b.Queue("ROLLBACK")
	err = send(ctx, j.conn.Conn(), b, func(res pgx.BatchResults) error { return res.QueryRow().Scan(&ours) }, ran)
	if err == nil && !ours {
		j.doubt()
		return unavailable(errEnded)
	}
	return nil // giveBack rolls back
}
