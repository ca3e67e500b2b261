package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

var (
	_ semel.Lister         = (*reference)(nil)
	_ semel.Eraser         = (*reference)(nil)
	_ semel.SweepScheduler = (*reference)(nil)
)

// The abilities of the reference that look at, or after, all records at once.

func (s *reference) List(_ context.Context, p semel.ListParams) (found []semel.Record, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		for _, r := range t.Records {
			r.Now = s.now()
			if asksFor(&p, &r) {
				r.Reply = semel.Reply{Status: r.Reply.Status}
				found = append(found, r)
			}
		}
		return false
	})
	slices.SortFunc(found, func(a, b semel.Record) int { return comparePositions(a.Position(), b.Position()) })
	return found[:min(len(found), max(p.Limit, 0))], err
}

func asksFor(p *semel.ListParams, r *semel.Record) bool {
	return r.State != semel.StateAbsent && !r.Expired() &&
		(len(p.States) == 0 || slices.Contains(p.States, r.State)) &&
		(p.Scope == "" || p.Scope == r.Scope) &&
		r.Now.Sub(r.FirstStarted) >= p.OlderThan &&
		comparePositions(r.Position(), p.After) > 0
}

func comparePositions(a, b semel.Position) int {
	return cmp.Or(a.FirstStarted.Compare(b.FirstStarted), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Key, b.Key))
}

func (s *reference) ByOperation(_ context.Context, id semel.OperationID) (rec semel.Record, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		for _, r := range t.Records {
			if r.OperationID == id {
				rec = r
			}
		}
		rec.Now = s.now()
		return false
	})
	return rec, err
}

func (s *reference) Erase(_ context.Context, scope, key string, a semel.Audit) (res semel.EraseResult, err error) {
	err = s.update(scope, key, func(t *tables, r *semel.Record) (changed bool) {
		res, changed = r.Erase()
		t.audit(res.AuditEntry(a))
		return changed
	})
	return res, err
}

func (s *reference) SweepTurn(_ context.Context, d time.Duration) (mine bool, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		now := s.now()
		if ago := now.Sub(t.Swept); ago >= 0 && ago < d {
			return false
		}
		t.Swept, mine = now, true
		return true
	})
	return mine, err
}

func (s *reference) SweepLag(context.Context) (lag time.Duration, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		for _, r := range t.Records {
			if r.Now = s.now(); r.Expired() {
				lag = max(lag, r.Now.Sub(r.Expires))
			}
		}
		return false
	})
	return lag, err
}
