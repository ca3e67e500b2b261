package sqlstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

var _ semel.Lister = (*Store)(nil)

// selectListed finds the first records of one state after a position, by the
// index on state and age: each state has its own part, so that what is asked
// for is read and no more. A list has no headers and no bodies.
const selectListed = `SELECT at, {columns} FROM (
	SELECT {now} + ? AS at, {withoutReply} FROM semel_records
	WHERE {search}state = ? AND {search}first_started >= ? AND {search}first_started <= {asked} + ?
	AND (first_started > ? OR scope > ? OR scope = ? AND idempotency_key > ?)
	AND (expires IS NULL OR expires > {asked} + ?){inScope}
	ORDER BY first_started, scope, idempotency_key LIMIT ?) of_state`

const listOrder = " ORDER BY first_started, scope, idempotency_key LIMIT ?"

// selectOperation always finds one row, as selectRecord does.
const selectOperation = `SELECT {now} + ?, {columns}
FROM (SELECT 1) one LEFT JOIN (SELECT {columns} FROM semel_records WHERE operation_id = ? LIMIT 1) r ON TRUE`

// List returns records, oldest first; those of one instant by scope and key.
func (s *Store) List(ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
	states := listedStates(p.States)
	if p.Limit <= 0 || len(states) == 0 {
		return nil, nil
	}
	parts, args := make([]string, 0, len(states)), []any(nil)
	for _, state := range states {
		parts = append(parts, partOf(&p))
		args = append(args, s.listArgs(&p, state)...)
	}
	statement := s.fill.text(strings.Join(parts, " UNION ALL ") + listOrder)
	rows, err := s.handles.ownRead.QueryContext(ctx, statement, append(args, p.Limit)...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var all []semel.Record
	for rows.Next() {
		r, err := scan(rows.Scan)
		if err != nil {
			return nil, unavailable(err)
		}
		all = append(all, r.record)
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable(err)
	}
	return all, nil
}

// listedStates are the states that have records, of those asked for.
func listedStates(asked []semel.State) []semel.State {
	all := []semel.State{semel.StateRunning, semel.StateDone, semel.StateReleased, semel.StateUnknown}
	if len(asked) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(s semel.State) bool { return !slices.Contains(asked, s) })
}

// partOf is selectListed for one state. In a scope the records are found by the
// primary key: what is an expression, "+state", is looked up in no index.
func partOf(p *semel.ListParams) string {
	search, inScope := "", ""
	if p.Scope != "" {
		search, inScope = "+", " AND scope = ?"
	}
	return strings.NewReplacer(
		"{withoutReply}", strings.Replace(columns, "header, body", "'' AS header, '' AS body", 1),
		"{search}", search, "{inScope}", inScope,
	).Replace(selectListed)
}

// listArgs are the arguments of one partOf.
func (s *Store) listArgs(p *semel.ListParams, state semel.State) []any {
	var after int64
	if !p.After.FirstStarted.IsZero() {
		after = p.After.FirstStarted.UnixMicro()
	}
	scope, offset := []byte(p.After.Scope), s.offset()
	args := []any{
		offset, int64(state), after, offset - int64(p.OlderThan/time.Microsecond),
		after, scope, scope, []byte(p.After.Key), offset,
	}
	if p.Scope != "" {
		args = append(args, []byte(p.Scope))
	}
	return append(args, p.Limit)
}

// ByOperation reads the record that has this operation id.
func (s *Store) ByOperation(ctx context.Context, id semel.OperationID) (semel.Record, error) {
	r, err := scan(s.handles.ownRead.QueryRowContext(ctx, s.fill.text(selectOperation), s.offset(), id[:]).Scan)
	if err != nil {
		return semel.Record{}, unavailable(err)
	}
	return r.record, nil
}
