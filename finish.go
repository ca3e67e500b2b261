package semel

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// finish ends the attempt: it saves how the work ended and returns what the
// caller is told. No reply is returned that will be replayed and is not saved.
func (a *attempt) finish(c Completion) (Result, error) {
	a.heartbeat.stop()
	defer a.cancel(context.Canceled)
	c = a.savable(a.weigh(c))
	held, err := a.save(c)
	if held.Status == HeldSuperseded || held.Status == HeldFinal {
		return a.superseded()
	}
	res := Result{Outcome: OutcomeUnknown, Ran: true, Takeover: a.takeover, Record: a.record}
	if held.Status != 0 {
		res.Outcome = a.ended(held.State)
		res.Record.State = held.State
	}
	if err == nil {
		res.Reply = c.Reply
	}
	return res, err
}

// ended observes and returns what a saved state is to the caller.
func (a *attempt) ended(s State) Outcome {
	switch s {
	case StateDone:
		a.observe(EventDone)
		return OutcomeExecuted
	case StateReleased:
		a.observe(EventReleased)
		return OutcomeReleased
	default:
		a.observe(EventUnknown)
		return OutcomeUnknown
	}
}

// weigh turns the work's verdict into what it means in this mode.
func (a *attempt) weigh(c Completion) Completion {
	switch {
	case a.replyStarted.Load() && c.Verdict == VerdictKeep:
		c.Verdict = VerdictKeepNoReply
	case a.replyStarted.Load() && c.Verdict == VerdictNotApplied:
		c.Verdict = VerdictUnknown
	case !a.replyStarted.Load() && c.Verdict == VerdictUnknown && a.rollbackUndoesAll():
		c.Verdict = VerdictNotApplied
	}
	return c
}

// savable takes away a reply that no store could save. The work is done all the
// same, and would run again at every retry if its end were not saved.
func (a *attempt) savable(c Completion) Completion {
	if c.Verdict != VerdictKeep {
		return c
	}
	if err := a.guard.checkReply(&c.Reply); err != nil {
		a.guard.cfg.Logger.Error("semel: the reply cannot be saved, so that repeats will not get it",
			"operation_id", a.record.OperationID.String(), "attempt", a.record.Attempt, "error", err)
		c.Verdict = VerdictKeepNoReply
	}
	return c
}

// checkReply is an error if the reply is none that the store can save.
func (g *Guard) checkReply(r *Reply) error {
	if err := r.Header.check(); err != nil {
		return err
	}
	if r.Status != savedStatus(r.Status) {
		return fmt.Errorf("semel: status %d cannot be saved: it has three digits, or is 0", r.Status)
	}
	if size := r.Header.size() + int64(len(r.Body)); size > g.maxReply {
		return fmt.Errorf("semel: a reply of %d bytes cannot be saved: the store takes %d at most", size, g.maxReply)
	}
	return nil
}

// savedStatus is the status that is saved of a reply: none if it is no status.
func savedStatus(status int) int {
	if status < 100 || status > 999 {
		return 0
	}
	return status
}

// rollbackUndoesAll reports whether ending the joined transaction undoes every
// effect of this attempt (M1).
func (a *attempt) rollbackUndoesAll() bool { return a.joint != nil && a.call.allInTx() }

func (a *attempt) params(c Completion) FinishParams {
	p := FinishParams{To: StateUnknown, Retention: a.guard.cfg.Retention}
	switch c.Verdict {
	case VerdictKeep:
		p.To, p.KeepReply, p.Reply = StateDone, true, c.Reply
	case VerdictKeepNoReply:
		p.To, p.Reply = StateDone, Reply{Status: savedStatus(c.Reply.Status)}
	case VerdictNotApplied:
		p.To = StateReleased
	}
	return p
}

// save writes the end: in the business transaction where its writes stand,
// else by itself after they are undone.
func (a *attempt) save(c Completion) (Held, error) {
	p := a.params(c)
	switch {
	case a.joint == nil:
		return a.finishAlone(p)
	case p.To == StateDone && !c.Undo && a.joint.Opened():
		return a.commit(p, a.joint.Commit)
	case p.To == StateDone && a.atomic != nil:
		return a.commit(p, a.atomic.CommitReply)
	}
	if err := a.joint.Rollback(); err != nil {
		// Somebody else may have ended the transaction, and committed it.
		a.guard.Observe(a, Event{Kind: EventStoreFault, Err: err})
		p = FinishParams{To: StateUnknown}
	}
	return a.finishUndone(p)
}

// finishUndone finishes when the business transaction has ended without
// effect. In atomic mode the claim has ended with it: nothing is left to
// finish, and what an earlier attempt of another mode has left is as it was
// (M2).
func (a *attempt) finishUndone(p FinishParams) (Held, error) {
	if a.atomic == nil {
		return a.finishAlone(p)
	}
	rec := a.record
	held, _ := rec.Finish(a.claim(), p)
	return held, nil
}

// commit finishes inside the business transaction.
func (a *attempt) commit(p FinishParams, commit func(context.Context, FinishParams) (Held, error)) (Held, error) {
	ctx := a.guard.storeContext(a)
	defer ctx.cancel(context.Canceled)
	held, err := commit(ctx, p)
	if err == nil {
		return held, nil
	}
	a.guard.Observe(a, Event{Kind: EventStoreFault, Err: err})
	if !errors.Is(err, ErrCommitRefused) {
		return a.askWhetherCommitted(err)
	}
	// Known undone in the database; calls outside may have happened (M1).
	to := StateUnknown
	if a.rollbackUndoesAll() {
		to = StateReleased
	}
	held, ferr := a.finishUndone(FinishParams{To: to, Retention: p.Retention})
	if ferr != nil {
		return Held{}, ferr
	}
	return held, err
}

// askWhetherCommitted settles a COMMIT without an answer: the record says
// whether it was this claim that finished it.
func (a *attempt) askWhetherCommitted(cause error) (Held, error) {
	ctx := a.guard.storeContext(a)
	defer ctx.cancel(context.Canceled)
	rec, err := a.guard.store.Get(ctx, a.record.Scope, a.record.Key)
	if err != nil {
		return Held{}, a.guard.storeFault(a, errors.Join(cause, err))
	}
	if rec.State == StateDone && rec.Token == a.record.Token && rec.Attempt == a.record.Attempt {
		return Held{Status: HeldYes, State: StateDone}, nil
	}
	return Held{}, ErrStoreUnavailable.because(fmt.Errorf("the commit has no known end: %w", cause))
}

// finishPauses are waited before Finish is sent again. It is idempotent for
// one claim and outcome, so sending it again is safe.
var finishPauses = [...]time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Second}

// finishAlone finishes in a commit of its own. If that fails for good the
// claim is left as it is: it is never released, and the reply never shown.
func (a *attempt) finishAlone(p FinishParams) (Held, error) {
	a.guard.initStoreContext(&a.saving, a)
	ctx := &a.saving
	for try := 0; ; try++ {
		held, err := a.finishOnce(ctx, p)
		if err == nil {
			return held, nil
		}
		err = a.guard.storeFault(a, err)
		if try == len(finishPauses) {
			return Held{}, err
		}
		time.Sleep(finishPauses[try])
		ctx = a.guard.storeContext(a)
	}
}

func (a *attempt) finishOnce(ctx *detachedContext, p FinishParams) (Held, error) {
	defer ctx.cancel(context.Canceled)
	return a.guard.store.Finish(ctx, a.claim(), p)
}

// superseded answers for an attempt whose end does not count, because a later
// one has fenced it off: with what the record says now, as long as it is still
// of this operation. A key that is new again may be another caller's.
func (a *attempt) superseded() (Result, error) {
	a.observe(EventLeaseLost)
	ctx := a.guard.storeContext(a)
	defer ctx.cancel(context.Canceled)
	rec, err := a.guard.store.Get(ctx, a.record.Scope, a.record.Key)
	if err != nil {
		return Result{Outcome: OutcomeUnknown, Record: a.record}, a.guard.storeFault(a, err)
	}
	begun := BeginResult{Outcome: BeginUnknown, Record: a.record}
	mine := rec.sameLife(&a.record)
	if a.atomic != nil { // its own record was undone with its transaction
		mine = rec.sameRequest(&a.record)
	}
	if mine && !rec.Expired() {
		begun = BeginResult{Outcome: rec.present(), Record: rec}
		if begun.Outcome == BeginUnknown && rec.mayResume(a.guard.resumeWithin) {
			begun.Outcome = BeginBusy // whoever asks next runs it again
		}
	}
	return a.guard.answer(context.WithoutCancel(a), a.call, begun)
}

// logPanic keeps the stack, which is lost when the panic goes on from the
// caller's goroutine.
func (a *attempt) logPanic(end ending) {
	a.guard.cfg.Logger.Error("semel: work panicked",
		"operation_id", a.record.OperationID.String(), "attempt", a.record.Attempt,
		"panic", fmt.Sprint(end.panicked), "stack", string(end.stack))
}
