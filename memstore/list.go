package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

var (
	_ semel.Lister         = (*Store)(nil)
	_ semel.Eraser         = (*Store)(nil)
	_ semel.SweepScheduler = (*Store)(nil)
)

// List returns records, oldest first. It looks at every record there is, and
// holds the lock for as long as that and sorting them take. It returns no error.
func (s *Store) List(_ context.Context, p semel.ListParams) ([]semel.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var found []semel.Record
	for _, e := range s.records {
		r := e.record
		r.Now = now
		if listed(&r, &p) {
			r.Reply = semel.Reply{Status: r.Reply.Status}
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b semel.Record) int { return compare(a.Position(), b.Position()) })
	return found[:min(len(found), max(p.Limit, 0))], nil
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

// ByOperation returns the record that has this operation id. It looks at every
// record until it is found. The body of its reply is shared.
func (s *Store) ByOperation(_ context.Context, id semel.OperationID) (semel.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.records {
		if e.record.OperationID == id {
			r := e.record
			r.Now = time.Now()
			return r, r.Reply.Header.UnmarshalText(e.header)
		}
	}
	return semel.Record{Now: time.Now()}, nil
}

// Erase drops the reply of a done record. It returns no error.
func (s *Store) Erase(_ context.Context, scope, key string, a semel.Audit) (semel.EraseResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, r := s.read(id{scope, key})
	res, changed := r.Erase()
	if changed {
		s.write(e, &r, nil)
		s.log(res.AuditEntry(a))
	}
	return res, nil
}

// SweepTurn takes a turn to sweep, if nobody has within d. It returns no error.
func (s *Store) SweepTurn(_ context.Context, d time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if ago := now.Sub(s.swept); !s.swept.IsZero() && ago >= 0 && ago < d {
		return false, nil
	}
	s.swept = now
	return true, nil
}

// SweepLag returns for how long the first to expire has been expired. It
// returns no error.
func (s *Store) SweepLag(context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if e := s.firstExpired(now); e != nil {
		return now.Sub(e.record.Expires), nil
	}
	return 0, nil
}
