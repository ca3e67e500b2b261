package storetest_test

import (
	"context"
	"math"
	"time"

	"github.com/semel-dev/semel"
)

// brokenEnds are faults of Extend, Finish, Sweep and of joints.
var brokenEnds = []broken{
	{
		"finish without fencing",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) { c.Token, c.Attempt = r.Token, r.Attempt }),
		[]string{
			"Finish/a superseded claim can end nothing, whatever the later one has come to (promise 4)",
			"crash point 7: the owner is frozen, a rival finishes, the owner wakes/all its calls are refused and change nothing",
		},
	},
	{
		"finish fenced by the attempt alone",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if c.Attempt == r.Attempt {
				c.Token = r.Token
			}
		}),
		[]string{"Finish/a claim of an earlier life of the key can end nothing"},
	},
	{
		"release that forgets digests",
		afterFinish(func(r *semel.Record) {
			if r.State == semel.StateReleased && r.Generation == 0 {
				*r = semel.Record{Now: r.Now}
			}
		}),
		[]string{
			"crash point 13: mismatch/another request is refused, and changes nothing, on a record that is released",
			"Finish/a claim ends released, keeping its digests and token (R15)",
		},
	},
	{
		"sweep that does not re-test",
		sweepWithoutRetest,
		[]string{"crash point 12: Sweep/a record that is claimed anew while a sweep runs is not removed by it"},
	},
	{
		"sweep without limit",
		func(s *reference) semel.Store {
			return &faulty{reference: s, sweep: func(ctx context.Context, _ int) (int, error) { return s.Sweep(ctx, math.MaxInt) }}
		},
		[]string{"crash point 12: Sweep/at most limit records go at a time, and in the end all"},
	},
	{
		"unknown records swept",
		sweeping(func(r *semel.Record) bool {
			return r.Expired() || r.State == semel.StateUnknown && r.Now.Sub(r.Finished) > 24*time.Hour
		}),
		[]string{"crash point 12: Sweep/running, lapsed, unknown and reply-started records stay, whatever their age (R25)"},
	},
	{
		"tombstone lost",
		sweeping(func(r *semel.Record) bool { return r.Expired() }),
		[]string{"a settlement/a raised generation outlives retention and sweep, and so does its operation id (M8)"},
	},
	{
		"lapsed counted as superseded",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateRunning && r.LeaseLeft() <= 0 {
				c.Attempt = -1
			}
		}),
		[]string{
			"Finish/a claim whose lease has lapsed ends like any other (R16)",
			"crash point 8: the owner is frozen, nobody takes over, the owner wakes/its Finish is accepted, though a rival has seen Unknown (R16)",
		},
	},
	{
		"open ignored",
		beforeFinish(func(r *semel.Record, _ *semel.Claim, _ *semel.FinishParams) { r.Open = false }),
		[]string{"open/released on an open record is stored as unknown, and again as that (M2)"},
	},
	{
		"done that is not final",
		beforeFinish(func(r *semel.Record, _ *semel.Claim, p *semel.FinishParams) {
			if r.State == semel.StateDone && p.To == semel.StateUnknown {
				r.State = semel.StateRunning
			}
		}),
		[]string{"Finish/done is final and does not become unknown (M5)"},
	},
	{
		"unknown that is final",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateUnknown {
				c.Attempt = -1
			}
		}),
		[]string{"Finish/unknown may still become done by its own attempt (M5)"},
	},
	{
		"Finish that is refused when it is sent again",
		beforeFinish(func(r *semel.Record, c *semel.Claim, _ *semel.FinishParams) {
			if r.State == semel.StateDone {
				c.Attempt = -1
			}
		}),
		[]string{
			"crash point 9: Finish, and its answer is lost/the same Finish again is held, and the first one's reply and times stay",
			"crash point 9: Finish, and its answer is lost/the same Finish sent many times at once is held every time",
		},
	},
	{
		"Extend that brings unknown back to running",
		beforeExtend(func(r *semel.Record, _ *semel.ExtendParams) {
			if r.State == semel.StateUnknown {
				r.State = semel.StateRunning
			}
		}),
		[]string{"Extend/on an unknown record it renews nothing, but saves the mark (M5)"},
	},
	{
		"mark of a started reply forgotten",
		beforeExtend(func(_ *semel.Record, p *semel.ExtendParams) { p.ReplyStarted = false }),
		[]string{"Resume/a record whose reply had started is not run again, lapsed or unknown"},
	},
	{
		"joined rows that outlive a refused commit",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return unfencedJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{
			"crash point 7: a joined owner wakes after a takeover/its commit is refused, and its business rows are gone (promise 4)",
			"joined mode/a claim that has ended otherwise is refused as final, and its rows are gone",
		},
	},
	{
		"joined commit of an end that is not done",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return undoneJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{"joined mode/an end that is not done is refused, and the transaction stays open"},
	},
	{
		"joint that a refused end closes",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return closingJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{"joined mode/an end that is not done is refused, and the transaction stays open"},
	},
	{
		"joined reply without its rows",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint {
				return apartJoint{&joint{store: s, claim: c}}
			}}
		},
		[]string{"joined mode/reply and business rows are there together"},
	},
	{
		"claims held that were never made",
		func(s *reference) semel.Store {
			return &faulty{reference: s, extend: func(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
				held, err := s.Extend(ctx, c, p)
				if held.State == semel.StateAbsent {
					held.Status = semel.HeldYes
				}
				return held, err
			}}
		},
		[]string{
			"claim/a key that nobody used is absent, which is no error",
			"crash point 12: Sweep/a swept claim can neither extend nor end anything",
		},
	},
}
