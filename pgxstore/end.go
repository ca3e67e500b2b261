package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-dev/semel"
)

// A claim that is held no more, and a transaction that is not the marked one,
// make the statement that ends a claim fail, so that the COMMIT behind it does
// nothing. They do so by SQLSTATEs that nothing else in it can have: there is no
// other way to raise one without a function.
const (
	stateNotOurs = "22P02" // a text that is no integer
	stateNotHeld = "22007" // a text that is no date

	// ours is whether the transaction has the mark that it was given.
	ours = `pg_catalog.current_setting('semel.joint', true) = (SELECT yours FROM mark)`

	// isOurs asks.
	isOurs = `WITH mark AS (SELECT $1::text AS yours) SELECT ` + ours + ` IS TRUE`

	// orFail counts the rows that were written and fails where there is none.
	orFail = `
SELECT CASE
	WHEN ` + ours + ` IS NOT TRUE THEN ('semel: this is not the transaction that was opened; rows written: ' || pg_catalog.count(*))::integer IS NULL
	WHEN pg_catalog.count(*) = 0 THEN ('semel: the claim is not held any more; rows written: ' || pg_catalog.count(*))::date IS NULL
	ELSE true END
FROM ended`
)

// byIndex is for a statement of the store's own among those of the handler: see
// ownParams. byAnyPlan gives the handler back what it had. waits has the commit
// wait for the disk, whatever the handler has set, and durably is byIndex too.
const (
	byIndex   = "SET LOCAL enable_seqscan = off"
	byAnyPlan = "SET LOCAL enable_seqscan TO DEFAULT"
	waits     = `pg_catalog.set_config('synchronous_commit', coalesce(nullif(pg_catalog.current_setting('synchronous_commit'), 'off'), 'on'), true)`
	durably   = `SELECT pg_catalog.set_config('enable_seqscan', 'off', true), ` + waits
)

// ending is the statement before that which ends a claim and COMMIT.
func (s *Store) ending() string {
	if s.class == semel.Durable {
		return durably
	}
	return byIndex
}

// endClaimed ends a claim that has no end yet, as [semel.Record.Finish] does:
// whoever holds it may still say that it is done, lapsed or unknown (R16, M5).
const endClaimed = `WITH ` + clock + `, mark AS (SELECT $11::text AS yours),
ended AS (UPDATE semel_records SET ` + endColumns + `
	FROM clock WHERE scope = $1::bytea AND idempotency_key = $2::bytea AND token = $3::bytea AND attempt = $4::bigint AND state IN (1, 4) AND ` + ours + `
	RETURNING true)` + orFail

func (j *joint) endClaim(p semel.FinishParams) (statement string, args []any, err error) {
	args, _, err = endArgs(j.claim, p)
	return j.store.sql.endClaimed, append(args, j.mark()), err
}

// endNew and endSeen write the whole record of an atomic claim, which nobody
// has seen yet: over none, or over the version that the claim was made of.
const (
	endNew = `WITH ` + clock + `, mark AS (SELECT $31::text AS yours),
ended AS (` + insertRecord + ` WHERE ` + ours + ` ON CONFLICT DO NOTHING RETURNING true)` + orFail

	endSeen = `WITH ` + clock + `, mark AS (SELECT $32::text AS yours),
ended AS (` + updateRecord + ` AND ` + ours + ` RETURNING true)` + orFail
)

func (j *atomicJoint) endAll(p semel.FinishParams) (statement string, args []any, err error) {
	end := j.row
	end.endBase = nil // times of the end are the clock's
	end.record.Now = epoch
	end.record.Finish(j.claim, p)
	statement, args, err = end.save(j.store.sql.endNew, j.store.sql.endSeen)
	return statement, append(args, j.mark()), err
}

var _ semel.Binder[pgx.Tx] = (*Store)(nil)

// FinishTx ends c in a transaction that its caller owns: in one round trip
// where the claim is running, which it is unless its owner took its time. Where
// the store is durable, so is that commit, unless the caller sets
// synchronous_commit to off afterwards: a reply could then be shown that a crash
// takes back.
func (s *Store) FinishTx(ctx context.Context, tx pgx.Tx, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	args, ends, err := endArgs(c, p)
	if err == nil && ends && p.Settlement == nil {
		var tag pgconn.CommandTag
		if tag, err = tx.Exec(ctx, s.sql.finish, args...); err == nil && tag.RowsAffected() == 1 {
			return semel.Held{Status: semel.HeldYes, State: p.To}, nil
		}
	}
	if err != nil {
		return semel.Held{}, unavailable(err)
	}
	held, err := s.finishLocked(ctx, tx, c, p)
	if err != nil {
		return semel.Held{}, unavailable(err)
	}
	return held, nil
}

// finishLocked reads the row under its lock, and writes what became of it.
func (s *Store) finishLocked(ctx context.Context, tx pgx.Tx, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	r, err := scan(tx.QueryRow(ctx, s.sql.lock, []byte(c.Scope), []byte(c.Key)))
	if err != nil {
		return semel.Held{}, err
	}
	held, changed := r.record.Finish(c, p)
	if !changed {
		if held.Status == semel.HeldYes {
			held.Status = semel.HeldFinal
		}
		return held, nil
	}
	b := &pgx.Batch{}
	steps, err := s.queueChange(b, &r, p.AuditEntry(&r.record, changed))
	if err != nil {
		return semel.Held{}, err
	}
	if s.class == semel.Durable {
		b.Queue("SELECT " + waits)
		steps = append(steps, ran)
	}
	return held, send(ctx, tx, b, steps...)
}
