package pgxstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// claimNew makes the row of a key that has none, or reads the one it has. It
// finds neither if a rival's row came in between (R23).
const claimNew = `WITH ` + clock + `,
seen AS MATERIALIZED (SELECT ` + columns + ` FROM semel_records WHERE scope = $1::bytea AND idempotency_key = $2::bytea),
claimed AS (` + insertRecord + ` WHERE NOT EXISTS (SELECT FROM seen) ON CONFLICT DO NOTHING RETURNING true AS yes)
SELECT claimed.yes, clock.now, seen.* FROM clock LEFT JOIN claimed ON true LEFT JOIN seen ON true`

const (
	// claimSeen writes a claim over the version that was seen, if it is still
	// there.
	claimSeen = `WITH ` + clock + ` ` + updateRecord + ` RETURNING clock.now`
	// claimAgain renews the claim of a token that has it already.
	claimAgain = renewRunning + ` RETURNING clock.now`
)

// beginTries is how often another writer may come in between.
const beginTries = 5

var errNoRest = errors.New("the key does not rest: others write it faster than it can be claimed")

// Begin claims p's key or says why it cannot be claimed: in one round trip if
// the key is new, or if there is nothing to write. A claim of a key that has a
// row takes another one, which finds the row as it was seen, or begins again.
func (s *Store) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	if p.Force != nil {
		return s.beginForced(ctx, p)
	}
	blocked := false
	for range beginTries {
		seen, claimed, err := s.claimNew(ctx, p)
		if err != nil {
			return semel.BeginResult{}, unavailable(err)
		}
		if !claimed && seen.version == 0 {
			continue
		}
		after := seen.record
		res, changed := after.Begin(p)
		switch {
		case claimed || !changed:
			return res, nil
		case blocked:
			return semel.BeginResult{Outcome: semel.BeginBusy, Record: seen.record}, nil
		}
		res, ok, err := s.claimSeen(ctx, seen, p)
		switch {
		case hasState(err, stateLockUnavailable):
			// Somebody is writing it, in a transaction that takes its time: its
			// owner may be finishing it. What is committed by now says more.
			blocked = true
		case err != nil:
			return semel.BeginResult{}, unavailable(err)
		case ok:
			return res, nil
		}
	}
	return semel.BeginResult{}, unavailable(errNoRest)
}

// claimNew claims a key that has no row, or returns the row that it has. The
// rules are [semel.Record.Begin]'s: all that the statement adds is the time.
func (s *Store) claimNew(ctx context.Context, p semel.BeginParams) (seen row, claimed bool, err error) {
	fresh := row{record: semel.Record{Now: epoch}}
	fresh.record.Begin(p)
	args, err := fresh.args()
	if err != nil {
		return row{}, false, err
	}
	var yes *bool
	err = s.one(ctx, func(from pgx.Row) error {
		seen, err = scan(from, &yes)
		return err
	}, s.sql.claimNew, args...)
	return seen, yes != nil, err
}

// claimSeen writes the claim that p makes of a row that was read without its
// lock. That is sound: the row is the one that was seen, or nothing is written,
// and a claim that was allowed then is allowed later.
func (s *Store) claimSeen(ctx context.Context, seen row, p semel.BeginParams) (semel.BeginResult, bool, error) {
	statement, args, err := s.claimSeenArgs(seen, p)
	if err != nil {
		return semel.BeginResult{}, false, err
	}
	var now int64
	err = s.one(ctx, func(from pgx.Row) error { return from.Scan(&now) }, statement, args...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return semel.BeginResult{}, false, nil
	case err != nil:
		return semel.BeginResult{}, false, err
	}
	seen.record.Now = time.UnixMicro(now).UTC()
	res, _ := seen.record.Begin(p)
	return res, true, nil
}

func (s *Store) claimSeenArgs(seen row, p semel.BeginParams) (statement string, args []any, err error) {
	before := seen.record
	if before.State == semel.StateRunning && before.Token == p.Token {
		return s.sql.claimAgain, renewArgs(before.Claim(), semel.ExtendParams{Lease: p.Lease}), nil
	}
	res, _ := seen.record.Begin(p)
	seen.fromClock(res.From == semel.StateAbsent)
	return seen.save("", s.sql.claimSeen)
}

// beginForced is the first half of a settlement. It claims no key that has no
// row, and reads under the lock: it is rare, and leaves a line in the log.
func (s *Store) beginForced(ctx context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
	err = s.change(ctx, p.Scope, p.Key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		res, changed = r.Begin(p)
		return changed, p.AuditEntry(&res)
	})
	if err != nil {
		return semel.BeginResult{}, err
	}
	return res, nil
}
