package storetest_test

import (
	"context"

	"github.com/semel-dev/semel"
)

// brokenAtomic is the fault of a store whose atomic claims are not as they
// should be: change gets each answer.
func brokenAtomic(change func(s *reference, p semel.BeginParams, res *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, atomic: func(ctx context.Context, p semel.BeginParams) (semel.BeginResult, semel.AtomicJoint, error) {
			res, joint, err := s.BeginAtomic(ctx, p, 0)
			return res, change(s, p, &res, joint), err
		}}
	}
}

var brokenAtomicStores = []broken{
	{
		"atomic claims that others see",
		brokenAtomic(func(s *reference, p semel.BeginParams, res *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if joint != nil {
				_ = s.update(p.Scope, p.Key, func(_ *tables, r *semel.Record) bool {
					*r = res.Record
					return true
				})
			}
			return joint
		}),
		[]string{
			"atomic mode/claim, reply and business rows are there together, and not before",
			"atomic mode/rolled back, there is nothing at all, and the key is claimed again at once (R17)",
			"atomic mode beside the others/a takeover that is rolled back leaves the record as it was",
		},
	},
	{
		"atomic claims without a lock",
		brokenAtomic(func(s *reference, p semel.BeginParams, _ *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			s.open.Delete(at{p.Scope, p.Key})
			return joint
		}),
		[]string{
			"atomic mode/while one is open the next is busy at once, whatever its fingerprint (R17)",
			"atomic mode/of sixty-four at once one claims, and the others find it busy",
		},
	},
	{
		"atomic replays that count themselves",
		brokenAtomic(func(s *reference, p semel.BeginParams, res *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if res.Outcome == semel.BeginReplay {
				_ = s.update(p.Scope, p.Key, func(*tables, *semel.Record) bool { return true })
			}
			return joint
		}),
		[]string{"atomic mode/a repeat of a done key is replayed and writes nothing"},
	},
	{
		"atomic claims that do not say who holds them up",
		brokenAtomic(func(_ *reference, _ semel.BeginParams, res *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if res.Outcome == semel.BeginBusy {
				res.Record = semel.Record{}
			}
			return joint
		}),
		[]string{"atomic mode beside the others/a live claim of another mode is busy"},
	},
	{
		"atomic commits that keep the rows only with the reply",
		brokenAtomic(func(_ *reference, _ semel.BeginParams, _ *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if joint == nil {
				return nil
			}
			return withoutReplyUndone{joint}
		}),
		[]string{"atomic mode/done without a reply commits the business rows"},
	},
	{
		"atomic commits that are not fenced",
		brokenAtomic(func(_ *reference, _ semel.BeginParams, _ *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if joint == nil {
				return nil
			}
			return unfencedAtomic{joint.(*atomicJoint)} //nolint:forcetypeassert // the reference has no other.
		}),
		[]string{
			"atomic mode beside the others/an owner that finishes before the takeover's commit wins, and the taker's rows are gone",
			"atomic mode beside the others/a Begin is not kept waiting, and the commit is refused after it: its rows are gone (promise 4)",
		},
	},
}

type withoutReplyUndone struct{ semel.AtomicJoint }

func (j withoutReplyUndone) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	if !p.KeepReply {
		return j.CommitReply(ctx, p)
	}
	return j.AtomicJoint.Commit(ctx, p)
}

type unfencedAtomic struct{ *atomicJoint }

func (j unfencedAtomic) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	_ = j.store.update(j.claim.Scope, j.claim.Key, func(_ *tables, r *semel.Record) bool {
		j.read = *r
		return false
	})
	return j.atomicJoint.Commit(ctx, p)
}
