package pgxstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

var (
	_ semel.Lister = (*Store)(nil)
	_ semel.Eraser = (*Store)(nil)
)

// listed finds the first records of each state after a position, by the index
// on state and age: what is asked for is read and no more. A list has no
// headers and no bodies.
var listed = `WITH ` + clock + `
SELECT clock.now, r.* FROM clock, pg_catalog.unnest($1::smallint[]) AS asked (state), LATERAL (
	SELECT ` + strings.Replace(columns, "header, body", "''::bytea AS header, ''::bytea AS body", 1) + ` FROM semel_records
	WHERE semel_records.state = asked.state AND first_started >= $2::bigint AND first_started <= clock.now - $3::bigint
	AND (first_started, scope, idempotency_key) > ($2::bigint, $4::bytea, $5::bytea)
	AND (expires IS NULL OR expires > clock.now) AND ($6::bytea IS NULL OR scope = $6::bytea)
	ORDER BY first_started, scope, idempotency_key LIMIT $7::integer) AS r
ORDER BY r.first_started, r.scope, r.idempotency_key LIMIT $7::integer`

// List returns records, oldest first; those of one instant by scope and key.
func (s *Store) List(ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
	if p.Limit <= 0 {
		return nil, nil
	}
	after, scope := int64(0), []byte(nil)
	if !p.After.FirstStarted.IsZero() {
		after = p.After.FirstStarted.UnixMicro()
	}
	if p.Scope != "" {
		scope = []byte(p.Scope)
	}
	var all []semel.Record
	err := s.many(ctx, func(from pgx.CollectableRow) error {
		r, err := scan(from)
		all = append(all, r.record)
		return err
	}, s.sql.list, listedStates(p.States), after, p.OlderThan.Microseconds(), []byte(p.After.Scope), []byte(p.After.Key), scope, p.Limit)
	if err != nil {
		return nil, unavailable(err)
	}
	return all, nil
}

// listedStates are the states that have records, of those asked for.
func listedStates(asked []semel.State) []int16 {
	var all []int16
	for _, s := range []semel.State{semel.StateRunning, semel.StateDone, semel.StateReleased, semel.StateUnknown} {
		if len(asked) == 0 || slices.Contains(asked, s) {
			all = append(all, int16(s))
		}
	}
	return all
}

// selectOperation always finds one row, as selectRecord does.
const selectOperation = `WITH r AS MATERIALIZED (SELECT ` + columns + ` FROM semel_records WHERE operation_id = $1::bytea LIMIT 1)
SELECT ` + now + `, r.* FROM (SELECT) AS one LEFT JOIN r ON true`

// ByOperation reads the record that has this operation id.
func (s *Store) ByOperation(ctx context.Context, id semel.OperationID) (semel.Record, error) {
	var r row
	err := s.one(ctx, func(from pgx.Row) (err error) {
		r, err = scan(from)
		return err
	}, s.sql.operation, id[:])
	if err != nil {
		return semel.Record{}, unavailable(err)
	}
	return r.record, nil
}

// Erase drops the reply of a done record. What the database keeps of a row that
// was changed, in its log, in free pages and in backups, it keeps.
func (s *Store) Erase(ctx context.Context, scope, key string, a semel.Audit) (res semel.EraseResult, err error) {
	err = s.change(ctx, scope, key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		res, changed = r.Erase()
		return changed, res.AuditEntry(a)
	})
	if err != nil {
		return semel.EraseResult{}, err
	}
	return res, nil
}

var _ semel.SweepScheduler = (*Store)(nil)

// takeTurn takes a turn that nobody has taken for long enough, or one that is
// in the future.
const takeTurn = `WITH ` + clock + `
UPDATE semel_sweep SET taken = clock.now FROM clock WHERE id = 1 AND (taken <= clock.now - $1::bigint OR taken > clock.now + $2::bigint)`

// clockTolerance is how far in the future a turn may be without the clock
// having been set back.
const clockTolerance = time.Second

// SweepTurn takes a turn to sweep, if nobody has within d.
func (s *Store) SweepTurn(ctx context.Context, d time.Duration) (bool, error) {
	n, err := s.exec(ctx, s.sql.turn, d.Microseconds(), clockTolerance.Microseconds())
	if err != nil {
		return false, unavailable(err)
	}
	return n == 1, nil
}

// selectLag finds the first to expire of the records of either kind, each by
// the index from which they are swept.
const selectLag = `WITH ` + clock + `
SELECT coalesce(pg_catalog.max(clock.now - expires), 0) FROM clock, LATERAL (
	(SELECT expires FROM semel_records WHERE generation = 0 AND expires <= clock.now ORDER BY expires LIMIT 1)
	UNION ALL
	(SELECT expires FROM semel_records WHERE generation > 0 AND expires <= clock.now ORDER BY expires LIMIT 1)) AS first`

// SweepLag returns for how long the first record to expire has been expired.
func (s *Store) SweepLag(ctx context.Context) (time.Duration, error) {
	var micros int64
	if err := s.one(ctx, func(from pgx.Row) error { return from.Scan(&micros) }, s.sql.lag); err != nil {
		return 0, unavailable(err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
