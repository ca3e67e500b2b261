package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/semel-dev/semel"
)

// broken is a store with one fault, and the rules that catch it.
type broken struct {
	name string
	wrap func(*reference) semel.Store
	// caughtBy are rules, "chapter/rule", that must fail. Others may.
	caughtBy []string
}

// faulty is a reference with some calls replaced.
type faulty struct {
	*reference

	begin   func(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error)
	extend  func(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error)
	finish  func(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error)
	get     func(ctx context.Context, scope, key string) (semel.Record, error)
	sweep   func(ctx context.Context, limit int) (int, error)
	join    func(c semel.Claim) semel.Joint
	atomic  func(ctx context.Context, p semel.BeginParams) (semel.BeginResult, semel.AtomicJoint, error)
	audits  func(ctx context.Context, scope, key string) ([]semel.AuditEntry, error)
	renamed func(scope, key string) (string, string)
}

func (f *faulty) Unwrap() semel.Store { return f.reference }

func (f *faulty) at(scope, key string) (string, string) {
	if f.renamed == nil {
		return scope, key
	}
	return f.renamed(scope, key)
}

func (f *faulty) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	p.Scope, p.Key = f.at(p.Scope, p.Key)
	if f.begin != nil {
		return f.begin(ctx, p)
	}
	return f.reference.Begin(ctx, p)
}

func (f *faulty) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	c.Scope, c.Key = f.at(c.Scope, c.Key)
	if f.extend != nil {
		return f.extend(ctx, c, p)
	}
	return f.reference.Extend(ctx, c, p)
}

func (f *faulty) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	c.Scope, c.Key = f.at(c.Scope, c.Key)
	if f.finish != nil {
		return f.finish(ctx, c, p)
	}
	return f.reference.Finish(ctx, c, p)
}

func (f *faulty) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	scope, key = f.at(scope, key)
	if f.get != nil {
		return f.get(ctx, scope, key)
	}
	return f.reference.Get(ctx, scope, key)
}

func (f *faulty) Sweep(ctx context.Context, limit int) (int, error) {
	if f.sweep != nil {
		return f.sweep(ctx, limit)
	}
	return f.reference.Sweep(ctx, limit)
}

func (f *faulty) Join(c semel.Claim) semel.Joint {
	if f.join != nil {
		return f.join(c)
	}
	return f.reference.Join(c)
}

func (f *faulty) BeginAtomic(ctx context.Context, p semel.BeginParams, limit time.Duration) (semel.BeginResult, semel.AtomicJoint, error) {
	p.Scope, p.Key = f.at(p.Scope, p.Key)
	if f.atomic != nil {
		return f.atomic(ctx, p)
	}
	return f.reference.BeginAtomic(ctx, p, limit)
}

func (f *faulty) Audits(ctx context.Context, scope, key string) ([]semel.AuditEntry, error) {
	if f.audits != nil {
		return f.audits(ctx, scope, key)
	}
	return f.reference.Audits(ctx, scope, key)
}

// pause lets everybody else go first, in a bubble.
func pause() { time.Sleep(time.Millisecond) }

// beforeBegin is the fault of a store that does something to the record, or
// the params, that it ought not to before it begins.
func beforeBegin(change func(r *semel.Record, p *semel.BeginParams)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, begin: func(_ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
			err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
				change(r, &p)
				res, changed = begin(t, r, p)
				return changed
			})
			return res, err
		}}
	}
}

// beforeFinish is the same of Finish.
func beforeFinish(change func(r *semel.Record, c *semel.Claim, p *semel.FinishParams)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, finish: func(_ context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
			failed := s.update(c.Scope, c.Key, func(t *tables, r *semel.Record) (changed bool) {
				change(r, &c, &p)
				held, changed, err = finish(t, r, c, p)
				return changed
			})
			return held, errors.Join(err, failed)
		}}
	}
}

// afterFinish is the fault of a store that saves something else than it should.
func afterFinish(change func(r *semel.Record)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, finish: func(_ context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
			failed := s.update(c.Scope, c.Key, func(t *tables, r *semel.Record) (changed bool) {
				if held, changed, err = finish(t, r, c, p); changed {
					change(r)
				}
				return changed
			})
			return held, errors.Join(err, failed)
		}}
	}
}

// beforeExtend is the fault of a store that renews what it ought not to.
func beforeExtend(change func(r *semel.Record, p *semel.ExtendParams)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, extend: func(_ context.Context, c semel.Claim, p semel.ExtendParams) (held semel.Held, err error) {
			err = s.update(c.Scope, c.Key, func(_ *tables, r *semel.Record) (changed bool) {
				change(r, &p)
				held, changed = r.Extend(c, p)
				return changed
			})
			return held, err
		}}
	}
}

// renaming is the fault of a store that takes two names for one.
func renaming(renamed func(scope, key string) (string, string)) func(*reference) semel.Store {
	return func(s *reference) semel.Store { return &faulty{reference: s, renamed: renamed} }
}

// readThenWrite is the fault of a store whose Begin does not hold on to what it
// has read, where applies says so of it.
func readThenWrite(applies func(r *semel.Record) bool) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, begin: func(ctx context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
			read, err := s.Get(ctx, p.Scope, p.Key)
			if err != nil || !applies(&read) {
				return s.Begin(ctx, p)
			}
			pause()
			err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
				read.Now = r.Now
				*r = read
				res, changed = begin(t, r, p)
				return changed
			})
			return res, err
		}}
	}
}

// sweeping is the fault of a store whose Sweep removes what remove says.
func sweeping(remove func(r *semel.Record) bool) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, sweep: func(_ context.Context, limit int) (n int, err error) {
			err = s.medium.borrow(func(t *tables) bool {
				for place, r := range t.Records {
					r.Now = s.now()
					if n < limit && remove(&r) {
						delete(t.Records, place)
						n++
					}
				}
				return n > 0
			})
			return n, err
		}}
	}
}

// replaceBegin is the fault of a store whose Begin is f.
func replaceBegin(f func(s *reference, ctx context.Context, p semel.BeginParams) (semel.BeginResult, error)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, begin: func(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
			return f(s, ctx, p)
		}}
	}
}

// afterBegin is the fault of a store that changes the record it has begun, or
// the answer, and says whether it writes for that.
func afterBegin(change func(r *semel.Record, p *semel.BeginParams, res *semel.BeginResult) (write bool)) func(*reference) semel.Store {
	return replaceBegin(func(s *reference, _ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
		err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
			res, changed = begin(t, r, p)
			return change(r, &p, &res) || changed
		})
		return res, err
	})
}

// sweepWithoutRetest looks for what is expired first and deletes it then.
func sweepWithoutRetest(s *reference) semel.Store {
	return &faulty{reference: s, sweep: func(_ context.Context, limit int) (int, error) {
		var found []at
		err := s.medium.borrow(func(t *tables) bool {
			for place, r := range t.Records {
				if r.Now = s.now(); r.Expired() && len(found) < limit {
					found = append(found, place)
				}
			}
			return false
		})
		pause()
		return len(found), func() error {
			if err != nil {
				return err
			}
			return s.medium.borrow(func(t *tables) bool {
				for _, place := range found {
					delete(t.Records, place)
				}
				return true
			})
		}()
	}}
}

// unfencedJoint commits its rows whatever became of the claim.
type unfencedJoint struct{ *joint }

func (j unfencedJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	rows := j.rows
	held, err := j.joint.Commit(ctx, p)
	if err == nil && held.Status != semel.HeldYes {
		err = j.store.medium.borrow(func(t *tables) bool { t.Rows += rows; return true })
	}
	return held, err
}

// undoneJoint commits every end.
type undoneJoint struct{ *joint }

func (j undoneJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if p.To == semel.StateDone {
		return j.joint.Commit(ctx, p)
	}
	return j.store.Finish(ctx, j.claim, p)
}

// closingJoint closes before it looks at the end.
type closingJoint struct{ *joint }

func (j closingJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if p.To != semel.StateDone {
		j.rows = 0
	}
	return j.joint.Commit(ctx, p)
}

// apartJoint finishes first and commits its rows, if nothing comes in between,
// after that.
type apartJoint struct{ *joint }

func (j apartJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	j.rows = 0
	return j.joint.Commit(ctx, p)
}
