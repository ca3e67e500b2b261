package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/semel-dev/semel"
)

var (
	_ semel.AtomicJoiner = (*reference)(nil)
	_ semel.AtomicJoint  = (*atomicJoint)(nil)
)

// atomicJoint is a joint whose claim nobody sees before it commits.
type atomicJoint struct {
	joint

	record semel.Record // the claim
	read   semel.Record // what it was made of
}

// BeginAtomic claims in the joint. The lock is this process's alone.
func (s *reference) BeginAtomic(_ context.Context, p semel.BeginParams, _ time.Duration) (res semel.BeginResult, claimed semel.AtomicJoint, err error) {
	err = s.update(p.Scope, p.Key, func(_ *tables, r *semel.Record) bool {
		read := *r
		var changed bool
		if res, changed = r.Begin(p); !changed {
			return false
		}
		if _, taken := s.open.LoadOrStore(at{p.Scope, p.Key}, true); taken {
			res.Outcome, res.Record.Token = semel.BeginBusy, semel.Token{}
			return false
		}
		claimed = &atomicJoint{joint: joint{store: s, claim: r.Claim()}, record: *r, read: read}
		return false
	})
	return res, claimed, err
}

func (j *atomicJoint) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, &j.joint)
}

func (j *atomicJoint) Opened() bool { return true }

func (j *atomicJoint) Rollback() error {
	j.rows = 0
	return j.store.medium.borrow(func(*tables) bool {
		j.store.open.Delete(at{j.claim.Scope, j.claim.Key})
		return false
	})
}

func (j *atomicJoint) CommitReply(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	j.rows = 0
	return j.Commit(ctx, p)
}

func (j *atomicJoint) Commit(_ context.Context, p semel.FinishParams) (held semel.Held, err error) {
	failed := j.store.update(j.claim.Scope, j.claim.Key, func(t *tables, r *semel.Record) bool {
		j.store.open.Delete(at{j.claim.Scope, j.claim.Key})
		if r.State != j.read.State || r.Claim() != j.read.Claim() {
			held = semel.Held{Status: semel.HeldSuperseded, State: r.State}
			return false
		}
		now := r.Now
		*r = j.record
		r.Now = now
		if held, _, err = finish(t, r, j.claim, p); err != nil {
			return false
		}
		t.Rows += j.rows
		return true
	})
	return held, errors.Join(err, failed)
}
