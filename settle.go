package semel

import (
	"context"
	"fmt"
	"time"
)

// SettleAs is what somebody says has happened.
type SettleAs uint8

// The settlements.
const (
	// SettleDone: it took effect. With a reply it is replayed, without one
	// repeats are told that it was not kept.
	SettleDone SettleAs = iota + 1
	// SettleNotApplied: it had no effect, and none is on the way; the key is
	// free.
	SettleNotApplied
	// SettleStartOver is SettleNotApplied under a new operation id, for a
	// downstream that would refuse the old one.
	SettleStartOver
)

// SettleParams is what Settle needs.
type SettleParams struct {
	// Expect is the record as it was when the person looked at it. A record
	// that has moved on is not settled (M7).
	Expect Record
	As     SettleAs
	// Reply is kept with SettleDone, if it is not nil.
	Reply *Reply
	// Actor and Reason are required and go to the audit log.
	Actor  string
	Reason string
	// Override waives the wait of SettleNotApplied and SettleStartOver: until
	// HandlerDeadline and SettleDelay have passed since the latest claim (M6).
	// The audit log says so.
	Override bool
}

// Settle records what happened to an operation whose outcome nobody knew. It
// refuses, with ErrSettleRefused, a record that is not there, not lapsed or
// unknown, or not as expected, or whose last attempt might still have an effect. It returns
// the record as it is then. Other errors match ErrConfig, for a parameter that
// is missing, or ErrStoreUnavailable: look at the record again.
func (g *Guard) Settle(ctx context.Context, p SettleParams) (Record, error) {
	if err := p.check(); err != nil {
		return Record{}, err
	}
	if p.Reply != nil {
		if err := g.checkReply(p.Reply); err != nil {
			return Record{}, configError("Reply", err.Error())
		}
	}
	audit := Audit{Actor: p.Actor, Reason: p.Reason, Override: p.Override}
	force := &Force{Attempt: p.Expect.Attempt, Token: p.Expect.Token, Audit: audit}
	wait := g.cfg.HandlerDeadline + g.cfg.SettleDelay
	if p.As != SettleDone && !p.Override {
		force.QuietFor = wait
	}
	begun, err := g.beginOnce(g.storeContext(ctx), g.store, BeginParams{
		Scope: p.Expect.Scope,
		Key:   p.Expect.Key,
		Token: NewToken(),
		Lease: g.cfg.Lease,
		Force: force,
	})
	if err != nil {
		return Record{}, err
	}
	if begun.Outcome != BeginClaimed {
		return begun.Record, refusedSettlement(begun.Record, force)
	}
	rec := begun.Record
	held, err := g.finishSettlement(ctx, rec, p, audit)
	if err != nil {
		return rec, err
	}
	if held.Status != HeldYes {
		return rec, ErrSettleRefused.saying("the record moved on to %v while it was being settled", held.State)
	}
	return g.Get(ctx, rec.Scope, rec.Key)
}

var errNothingToSettle = ErrSettleRefused.saying("there is no record under this scope and key")

func (p *SettleParams) check() error {
	switch {
	case p.Actor == "":
		return configError("Actor", "is required: who settles")
	case p.Reason == "":
		return configError("Reason", "is required: how it is known")
	case p.As < SettleDone || p.As > SettleStartOver:
		return configError("As", "is required: SettleDone, SettleNotApplied or SettleStartOver")
	case p.Reply != nil && p.As != SettleDone:
		return configError("Reply", "goes with SettleDone only")
	case p.Reply != nil && p.Reply.Status != 0 && (p.Reply.Status < 200 || p.Reply.Status > 599):
		return configError("Reply", fmt.Sprintf("has status %d; it is 200 to 599, or 0 where there is none", p.Reply.Status))
	case p.Expect.State == StateAbsent && !p.Expect.Now.IsZero(): // Get found none
		return errNothingToSettle
	case p.Expect.Key == "" || p.Expect.Scope == "":
		return configError("Expect", "is required: the record as you saw it")
	}
	return nil
}

func (g *Guard) finishSettlement(ctx context.Context, rec Record, p SettleParams, audit Audit) (Held, error) {
	f := FinishParams{
		To:         StateReleased,
		Retention:  g.cfg.Retention,
		Settlement: &Settlement{Audit: audit},
	}
	switch p.As {
	case SettleDone:
		f.To = StateDone
		if p.Reply != nil {
			f.KeepReply, f.Reply = true, *p.Reply
		}
	case SettleStartOver:
		f.Settlement.StartOver = NewOperationID(g.cfg.Service, rec.Scope, rec.Key, rec.Generation+1)
	}
	call := g.storeContext(ctx)
	defer call.cancel(context.Canceled)
	held, err := g.store.Finish(call, rec.Claim(), f)
	if err != nil {
		return held, g.storeFault(ctx, err)
	}
	return held, nil
}

// refusedSettlement says why a forced Begin did not claim.
func refusedSettlement(rec Record, f *Force) error {
	switch {
	case rec.State == StateAbsent:
		return errNothingToSettle
	case rec.State == StateDone || rec.State == StateReleased:
		return ErrSettleRefused.saying("the record is %v already", rec.State)
	case rec.State == StateRunning && rec.LeaseLeft() > 0:
		return ErrSettleRefused.saying("attempt %d is running; its lease has %v left", rec.Attempt, rec.LeaseLeft().Round(time.Millisecond))
	case rec.Attempt != f.Attempt || rec.Token != f.Token:
		return ErrSettleRefused.saying("the record has moved on to attempt %d since you looked; look again", rec.Attempt)
	}
	return ErrSettleRefused.saying("attempt %d may still have an effect; wait %v more, or override", rec.Attempt, (f.QuietFor - rec.AttemptAge()).Round(time.Second))
}
