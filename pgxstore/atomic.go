package pgxstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
)

var (
	_ semel.AtomicJoiner = (*Store)(nil)
	_ semel.AtomicJoint  = (*atomicJoint)(nil)
)

// atomicJoint is a business transaction with its claim in it.
//
// The claim is an advisory lock and a record in memory: the row is written with
// the end, over the version that the claim was made of. So it is the commit
// that fences, as in the other modes, and the lock only saves others the work
// that would be refused. Nothing that waits for a row waits for the handler.
type atomicJoint struct {
	joint

	row row
}

// BeginAtomic claims p's key in a business transaction. It reads first, on the
// connections of the store's own: a repeat of a key that has an answer needs
// none of those that handlers have, and takes no lock that would make others
// believe that the key is busy. Nor does one of a key that is at work, while
// handlers have them all.
func (s *Store) BeginAtomic(ctx context.Context, p semel.BeginParams, limit time.Duration) (semel.BeginResult, semel.AtomicJoint, error) {
	for {
		res, free, err := s.seeAtomic(ctx, p)
		if err != nil {
			return semel.BeginResult{}, nil, unavailable(err)
		}
		if !free {
			return res, nil, nil
		}
		conn, err := s.acquireTx(ctx, lookAgain)
		switch {
		case err == nil:
			return s.claimAtomic(ctx, conn, p, limit)
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return semel.BeginResult{}, nil, unavailable(err)
		}
	}
}

// lookAgain is how long a claim waits for a connection until it looks whether
// the key has an answer by now.
const lookAgain = time.Second

// lockHeld asks for a lock without taking it.
const lockHeld = `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
	AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
	AND classid::bigint = ($1::bigint >> 32) & 4294967295 AND objid::bigint = $1::bigint & 4294967295)`

// seeAtomic reads the record without its lock, and returns the answer unless
// the key may be free. Where a transaction would have to be waited for it asks
// before whether another has claimed the key, which the record does not tell.
func (s *Store) seeAtomic(ctx context.Context, p semel.BeginParams) (res semel.BeginResult, free bool, err error) {
	locked := false
	if s.txTaken() {
		err = s.one(ctx, func(from pgx.Row) error { return from.Scan(&locked) }, lockHeld, lockOf(p.Scope, p.Key))
		if err != nil {
			return res, false, err
		}
	}
	seen, err := s.read(ctx, p.Scope, p.Key)
	if err != nil {
		return res, false, err
	}
	res, free = seen.record.Begin(p)
	if free && locked {
		return busy(res), false, nil
	}
	return res, free, nil
}

// txTaken reports whether business transactions have all their connections.
func (s *Store) txTaken() bool {
	stat := s.tx.Stat()
	return stat.AcquiredConns()+stat.ConstructingConns() >= stat.MaxConns()
}

// acquireTx takes a connection for a business transaction, if there is one
// within wait.
func (s *Store) acquireTx(ctx context.Context, wait time.Duration) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.tx.Acquire(ctx)
}

// claimAtomic opens the transaction, takes the lock, and then reads in a
// statement of its own, which sees what the lock's last holder has committed
// (R17).
func (s *Store) claimAtomic(ctx context.Context, conn *pgxpool.Conn, p semel.BeginParams, limit time.Duration) (semel.BeginResult, semel.AtomicJoint, error) {
	j := &atomicJoint{joint: joint{store: s, claim: semel.Claim{Scope: p.Scope, Key: p.Key, Token: p.Token}}}
	j.ends = j.endAll
	var locked bool
	b := &pgx.Batch{}
	b.Queue("SELECT pg_catalog.pg_try_advisory_xact_lock($1::bigint)", lockOf(p.Scope, p.Key))
	b.Queue(byIndex)
	b.Queue(j.store.sql.read, []byte(p.Scope), []byte(p.Key))
	b.Queue(byAnyPlan)
	b.Queue("SAVEPOINT " + beforeWork)
	_, err := j.begin(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, limit, b,
		func(res pgx.BatchResults) error { return res.QueryRow().Scan(&locked) },
		ran,
		func(res pgx.BatchResults) (err error) {
			j.row, err = scan(res.QueryRow())
			return err
		},
		ran, ran)
	if err != nil {
		return semel.BeginResult{}, nil, unavailable(err)
	}
	res, changed := j.row.record.Begin(p)
	if changed && locked {
		j.claim = res.Record.Claim()
		return res, j, nil
	}
	if changed {
		res = busy(res)
	}
	return res, nil, j.Rollback()
}

// busy is the answer where a claim would be made, and is held up by another
// that nobody sees: all that is known of it is that it runs.
func busy(res semel.BeginResult) semel.BeginResult {
	res.Outcome, res.From = semel.BeginBusy, semel.StateAbsent
	res.Record.Token = semel.Token{}
	return res
}

// lockOf is the number of a key's advisory lock: 64 bits, of which two keys in
// use at one time share one about never (R17).
func lockOf(scope, key string) int64 {
	h := sha256.New()
	for _, part := range []string{"semel atomic", scope, key} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil))) //nolint:gosec // any 64 bits will do.
}

// beforeWork is the savepoint that the work is undone to.
const beforeWork = "semel_work"

// CommitReply undoes what the work has written, ends the claim and commits.
func (j *atomicJoint) CommitReply(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if err := j.closeFor(p); err != nil {
		return semel.Held{}, err
	}
	defer j.giveBack(ctx)
	if _, err := j.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+beforeWork); err != nil {
		return semel.Held{}, refused(err) // COMMIT is never sent
	}
	return j.endAndCommit(ctx, p)
}
