package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
)

var (
	_ semel.Lister         = (*Store)(nil)
	_ semel.Eraser         = (*Store)(nil)
	_ semel.SweepScheduler = (*Store)(nil)
)

// pageSize is how many records a list reads in one round trip.
const pageSize = 256

// List returns records, oldest first. Those that are running or unknown are
// found by their first start. For those that are done or released it looks at
// every one.
func (s *Store) List(ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
	if p.Limit <= 0 {
		return nil, nil
	}
	var (
		mu    sync.Mutex
		found []semel.Record
	)
	err := together(buckets, func(bucket int) error {
		for _, part := range partsOf(p.States) {
			in, err := s.listPart(ctx, bucket, part, &p)
			if err != nil {
				return err
			}
			mu.Lock()
			found = first(append(found, in...), p.Limit)
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return found, nil
}

// partsOf are the parts of the index in which the states are.
func partsOf(states []semel.State) []string {
	var parts []string
	in := func(of ...semel.State) bool {
		return len(states) == 0 || slices.ContainsFunc(states, func(s semel.State) bool { return slices.Contains(of, s) })
	}
	if in(semel.StateRunning, semel.StateUnknown) {
		parts = append(parts, partOpen)
	}
	if in(semel.StateDone, semel.StateReleased) {
		parts = append(parts, partKept)
	}
	return parts
}

// listPart returns the first records of a part that p asks for.
func (s *Store) listPart(ctx context.Context, bucket int, part string, p *semel.ListParams) (found []semel.Record, err error) {
	from := fromFirst
	if !p.After.FirstStarted.IsZero() {
		from = strconv.FormatInt(-p.After.FirstStarted.UnixMicro(), 10)
	}
	for offset := 0; ; offset += pageSize {
		pg, err := s.page(ctx, bucket, part, from, offset, pageSize)
		if err != nil {
			return nil, err
		}
		read, err := s.readAll(ctx, pg)
		if err != nil {
			return nil, err
		}
		for i := range read {
			if listed(&read[i], p) {
				found = append(found, read[i])
			}
		}
		found = first(found, p.Limit)
		if len(pg.members) < pageSize {
			return found, nil
		}
		// Of the open ones those that follow started later, or at the same
		// instant as the last.
		last := time.UnixMicro(-int64(pg.members[len(pg.members)-1].score))
		if part == partOpen && len(found) == p.Limit && found[p.Limit-1].FirstStarted.Before(last) {
			return found, nil
		}
	}
}

// first sorts records and returns the first ones.
func first(records []semel.Record, limit int) []semel.Record {
	slices.SortFunc(records, func(a, b semel.Record) int { return compare(a.Position(), b.Position()) })
	return records[:min(len(records), limit)]
}

// listed reports whether p asks for r.
func listed(r *semel.Record, p *semel.ListParams) bool {
	switch {
	case r.State == semel.StateAbsent || r.Expired():
		return false
	case len(p.States) > 0 && !slices.Contains(p.States, r.State):
		return false
	case p.Scope != "" && r.Scope != p.Scope:
		return false
	case r.Now.Sub(r.FirstStarted) < p.OlderThan:
		return false
	}
	return compare(r.Position(), p.After) > 0
}

func compare(a, b semel.Position) int {
	return cmp.Or(a.FirstStarted.Compare(b.FirstStarted), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}

// listFields are the fields that a list reads: all but the reply, of which it
// has the status.
var listFields = slices.DeleteFunc(slices.Clone(fieldNames[:]), func(name string) bool {
	return name == fieldNames[fieldHeader] || name == fieldNames[fieldBody]
})

// readAll reads the records of a page.
func (s *Store) readAll(ctx context.Context, pg page) ([]semel.Record, error) {
	replies := s.eachMember(ctx, pg, listFields)
	records := make([]semel.Record, 0, len(replies))
	for _, reply := range replies {
		values, err := reply.AsStrSlice() // what is not there is ""
		if err != nil {
			return nil, err
		}
		var hash []string
		for i, value := range values {
			if value != "" {
				hash = append(hash, listFields[i], value)
			}
		}
		r, err := rowOf(hash, pg.now)
		if err != nil {
			return nil, err
		}
		records = append(records, r.record)
	}
	return records, nil
}

// eachMember reads fields of all records of a page, in one round trip.
func (s *Store) eachMember(ctx context.Context, pg page, fields []string) []rueidis.RedisResult {
	commands := make(rueidis.Commands, 0, len(pg.members))
	for _, m := range pg.members {
		commands = append(commands, s.client.B().Hmget().Key(m.at.record()).Field(fields...).Build())
	}
	return s.client.DoMulti(ctx, commands...)
}

// ByOperation returns the record that has this operation id. It looks at those
// that are running or unknown, which somebody may want to settle, and then at
// every other one.
func (s *Store) ByOperation(ctx context.Context, id semel.OperationID) (semel.Record, error) {
	for _, part := range [...]string{partOpen, partKept, partExpired} {
		rec, err := s.operationIn(ctx, part, id)
		if err != nil {
			return semel.Record{}, unavailable(err)
		}
		if !rec.OperationID.IsZero() {
			return rec, nil
		}
	}
	// Only the time of an absent record is asked for.
	return s.Get(ctx, "", "")
}

// operationIn looks in one part of every bucket.
func (s *Store) operationIn(ctx context.Context, part string, id semel.OperationID) (semel.Record, error) {
	var (
		mu    sync.Mutex
		found semel.Record
	)
	err := together(buckets, func(bucket int) error {
		for offset := 0; ; offset += pageSize {
			pg, err := s.page(ctx, bucket, part, fromFirst, offset, pageSize)
			if err != nil {
				return err
			}
			rec, err := s.operationOn(ctx, pg, id)
			if err != nil {
				return err
			}
			if rec.OperationID == id {
				mu.Lock()
				found = rec
				mu.Unlock()
			}
			if len(pg.members) < pageSize {
				return nil
			}
		}
	})
	return found, err
}

// operationOn looks on one page.
func (s *Store) operationOn(ctx context.Context, pg page, id semel.OperationID) (semel.Record, error) {
	for i, reply := range s.eachMember(ctx, pg, []string{fieldNames[fieldOperation]}) {
		values, err := reply.AsStrSlice()
		if err != nil {
			return semel.Record{}, err
		}
		if values[0] == string(id[:]) {
			return s.change(ctx, pg.members[i].at, semel.Token{}, nil, nothing)
		}
	}
	return semel.Record{}, nil
}

// Erase drops the reply of a done record.
func (s *Store) Erase(ctx context.Context, scope, key string, a semel.Audit) (semel.EraseResult, error) {
	var res semel.EraseResult
	rec, err := s.change(ctx, s.placeOf(scope, key), semel.Token{}, nil, func(r *row) (verb, *semel.AuditEntry) {
		var changed bool
		res, changed = r.record.Erase()
		return writeIf(changed), res.AuditEntry(a)
	})
	if err != nil {
		return semel.EraseResult{}, unavailable(err)
	}
	res.Record = rec
	return res, nil
}
