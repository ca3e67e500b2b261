package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/semel-dev/semel"
)

// replaceFinish is the fault of a store whose Finish is f.
func replaceFinish(f func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error)) func(*reference) semel.Store {
	return func(s *reference) semel.Store {
		return &faulty{reference: s, finish: func(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
			return f(s, ctx, c, p)
		}}
	}
}

// withoutUnsavable is p with those fields of its reply that can be saved.
func withoutUnsavable(p semel.FinishParams) semel.FinishParams {
	p.Reply.Header = maps.Clone(p.Reply.Header)
	maps.DeleteFunc(p.Reply.Header, func(name string, _ []string) bool {
		_, err := semel.Header{name: nil}.MarshalText()
		return err != nil
	})
	return p
}

// unsavable are the rules of this name on each kind of field.
func unsavable(rule string) []string {
	var rules []string
	for _, what := range []string{"no name", "a colon in its name", "a line break in its name", "a carriage return in its name"} {
		rules = append(rules, "a reply that cannot be saved/"+fmt.Sprintf(rule, what))
	}
	return rules
}

// carelessJoint leaves out the fields that cannot be saved.
type carelessJoint struct{ semel.Joint }

func (j carelessJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	return j.Joint.Commit(ctx, withoutUnsavable(p))
}

// carelessAtomic does too.
type carelessAtomic struct{ semel.AtomicJoint }

func (j carelessAtomic) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	return j.AtomicJoint.Commit(ctx, withoutUnsavable(p))
}

func (j carelessAtomic) CommitReply(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	return j.AtomicJoint.CommitReply(ctx, withoutUnsavable(p))
}

// brokenReplies are faults in how replies are kept.
var brokenReplies = []broken{
	{
		"empty body taken for none kept",
		afterFinish(func(r *semel.Record) { r.ReplyKept = len(r.Reply.Body) > 0 }),
		[]string{"the kept reply/an empty body is kept as one, which is not a reply lost"},
	},
	{
		"one value for each field",
		afterFinish(func(r *semel.Record) {
			for name, values := range r.Reply.Header {
				r.Reply.Header[name] = values[:1]
			}
		}),
		[]string{"the kept reply/a field keeps its values in their order"},
	},
	{
		"body kept as text",
		afterFinish(func(r *semel.Record) { r.Reply.Body = []byte(strings.ToValidUTF8(string(r.Reply.Body), "\uFFFD")) }),
		[]string{
			"the kept reply/a body may hold any bytes",
			"the kept reply/a body that is not UTF-8 is kept",
		},
	},
	{
		"reply shared with its giver",
		func(s *reference) semel.Store {
			return &faulty{reference: s, finish: func(_ context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
				err = s.update(c.Scope, c.Key, func(_ *tables, r *semel.Record) (changed bool) {
					held, changed = r.Finish(c, p)
					return changed
				})
				return held, err
			}}
		},
		[]string{"a replay/what the caller does to its reply after Finish does not reach the store"},
	},
	{
		"line breaks kept as they are",
		replaceFinish(func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
			held, err := s.Finish(ctx, c, p)
			if err != nil || held.Status != semel.HeldYes || !p.KeepReply {
				return held, err
			}
			return held, s.update(c.Scope, c.Key, func(_ *tables, r *semel.Record) bool {
				r.Reply.Header = p.Reply.Header
				return true
			})
		}),
		[]string{"the kept reply/a line break in a field value comes back as a space"},
	},
	{
		"fields that cannot be saved left out",
		replaceFinish(func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
			return s.Finish(ctx, c, withoutUnsavable(p))
		}),
		unsavable("Finish with a field that has %s is an error, changes nothing, and is held when it is sent again without"),
	},
	{
		"Finish that ends the claim before it fails",
		replaceFinish(func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
			held, err := s.Finish(ctx, c, p)
			if err != nil {
				_, failed := s.Finish(ctx, c, withoutUnsavable(p))
				err = errors.Join(err, failed)
			}
			return held, err
		}),
		unsavable("Finish with a field that has %s is an error, changes nothing, and is held when it is sent again without"),
	},
	{
		"joined commits that leave out fields",
		func(s *reference) semel.Store {
			return &faulty{reference: s, join: func(c semel.Claim) semel.Joint { return carelessJoint{s.Join(c)} }}
		},
		unsavable("a joined commit with a field that has %s is an error, leaves no rows, and the claim runs on"),
	},
	{
		"atomic commits that leave out fields",
		brokenAtomic(func(_ *reference, _ semel.BeginParams, _ *semel.BeginResult, joint semel.AtomicJoint) semel.AtomicJoint {
			if joint == nil {
				return nil
			}
			return carelessAtomic{joint}
		}),
		unsavable("an atomic commit with a field that has %s is an error and leaves nothing"),
	},
	{
		"one header that fails all that are sent with it",
		func(s *reference) semel.Store {
			var failing atomic.Bool
			return replaceFinish(func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
				_, err := p.Reply.Header.MarshalText()
				if err != nil {
					failing.Store(true)
				}
				if pause(); failing.Load() {
					return semel.Held{}, errors.New("a header of the batch cannot be saved")
				}
				return s.Finish(ctx, c, p)
			})(s)
		},
		[]string{"a reply that cannot be saved/it fails no Finish that is sent beside it"},
	},
	{
		"headers looked at that are not to be kept",
		replaceFinish(func(s *reference, ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
			if _, err := p.Reply.Header.MarshalText(); err != nil {
				return semel.Held{}, err
			}
			return s.Finish(ctx, c, p)
		}),
		[]string{"a reply that cannot be saved/the header of a reply that is not to be kept does not matter"},
	},
}
