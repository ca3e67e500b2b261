package semel

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Verdict says what the end of the work means for the key.
type Verdict uint8

// The verdicts.
const (
	// VerdictUnknown: nobody can say whether it took effect. The zero value.
	VerdictUnknown Verdict = iota
	// VerdictKeep: it is done, and Completion.Reply is replayed to repeats.
	VerdictKeep
	// VerdictKeepNoReply: it is done, and its reply cannot be replayed.
	VerdictKeepNoReply
	// VerdictNotApplied: it is known to have had no effect (R1).
	VerdictNotApplied
)

// Completion is how the work ended.
type Completion struct {
	Verdict Verdict
	Reply   Reply
	// Undo rolls the business transaction back and keeps the reply all the
	// same, in a commit of its own (R13).
	Undo bool
}

// attempt is one run of the work under one claim.
type attempt struct {
	context.Context // of the work: its deadline and its cancellation
	guard           *Guard
	call            Call
	record          Record
	says            handlerSays
	started         time.Time
	cancel          context.CancelCauseFunc
	stopDeadline    context.CancelFunc
	beat            heartbeat
	joint           Joint
	replyStarted    atomic.Bool

	turn     atomic.Uint32 // who finishes: see run
	returned chan ending
}

// ending is how the work left: by returning, or not.
type ending struct {
	completion Completion
	panicked   any
	stack      []byte
	goexit     bool
}

// Value lets the attempt be its own context.
func (a *attempt) Value(key any) any {
	if _, ok := key.(attemptKey); ok {
		return a
	}
	return a.Context.Value(key)
}

// newAttempt prepares the work of a claim. The local lease counts from sent,
// which is before the store was asked.
func newAttempt(g *Guard, ctx context.Context, call Call, rec Record, sent time.Time) *attempt {
	a := &attempt{
		guard:    g,
		call:     call,
		record:   rec,
		started:  sent,
		returned: make(chan ending, 1),
	}
	ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	a.Context, a.stopDeadline = context.WithTimeoutCause(ctx, g.cfg.HandlerDeadline, ErrStillRunning)
	return a
}

func (a *attempt) claim() Claim { return a.record.Claim() }

func (a *attempt) operation() Operation {
	return Operation{
		ID:      a.record.OperationID,
		Scope:   a.record.Scope,
		Key:     a.record.Key,
		Attempt: a.record.Attempt,
		Trace:   a.record.Trace,
	}
}

// The values of attempt.turn. Whoever moves it from turnOpen finishes: the
// caller once the work has returned, the work's own goroutine once the caller
// has left at the deadline.
const (
	turnOpen uint32 = iota
	turnWorkReturned
	turnCallerLeft
)

// run runs the work on a goroutine of its own, so that the caller can be
// answered at the deadline while a work that ignores its context goes on
// (R19).
func (a *attempt) run(work func(context.Context) Completion) (Result, error) {
	a.beat.start(a)
	go a.work(work)
	select {
	case end := <-a.returned:
		return a.conclude(end)
	case <-a.Done():
	}
	if context.Cause(a) == ErrStillRunning && a.turn.CompareAndSwap(turnOpen, turnCallerLeft) { //nolint:errorlint // identity is meant.
		a.observe(EventStillRunning)
		return Result{Outcome: OutcomeUnknown, Ran: true, Record: a.record}, ErrStillRunning
	}
	return a.conclude(<-a.returned)
}

// work calls the work and hands its end over, or concludes by itself if
// nobody waits any more.
func (a *attempt) work(work func(context.Context) Completion) {
	end := ending{goexit: true}
	defer func() {
		if end.goexit {
			if p := recover(); p != nil {
				end = ending{panicked: p, stack: debug.Stack()}
			}
		}
		if a.turn.CompareAndSwap(turnOpen, turnWorkReturned) {
			a.returned <- end
			return
		}
		a.concludeAlone(end)
	}()
	var ctx context.Context = a
	if a.call.Mode == Joined {
		if j, ok := As[Joiner](a.guard.store); ok {
			a.joint = j.Join(a.claim())
			ctx = a.joint.Context(ctx)
		}
	}
	end.completion = work(ctx)
	end.goexit = false
}

// concludeAlone ends an attempt whose caller was answered at the deadline.
func (a *attempt) concludeAlone(end ending) {
	log := a.guard.cfg.Logger.With("operation_id", a.record.OperationID.String(), "attempt", a.record.Attempt)
	_, err := a.finish(end.completion)
	switch {
	case end.panicked != nil:
		log.Error("semel: work panicked after its deadline", "panic", fmt.Sprint(end.panicked), "stack", string(end.stack))
	case err != nil:
		log.Error("semel: work returned after its deadline and its end could not be saved", "error", err)
	default:
		log.Warn("semel: work returned after its deadline", "duration", time.Since(a.started))
	}
}

// conclude saves how the work ended and returns what the caller is told. A
// panic goes on from here as if nothing had been in between.
func (a *attempt) conclude(end ending) (Result, error) {
	res, err := a.finish(end.completion)
	switch {
	case end.panicked != nil:
		a.logPanic(end)
		panic(end.panicked)
	case end.goexit:
		return res, fmt.Errorf("semel: the work ended its goroutine without returning")
	}
	return res, err
}

func (a *attempt) observe(kind EventKind) {
	a.guard.Observe(a, Event{
		Kind:        kind,
		OperationID: a.record.OperationID,
		Attempt:     a.record.Attempt,
		Duration:    time.Since(a.started),
	})
}

// markReplyStarted saves the mark once.
func (a *attempt) markReplyStarted() error {
	if a.replyStarted.Load() {
		return nil
	}
	ctx, cancel := a.guard.storeContext(a)
	defer cancel()
	held, err := a.guard.store.Extend(ctx, a.claim(), ExtendParams{Lease: a.guard.cfg.Lease, ReplyStarted: true})
	if err != nil {
		return a.guard.storeFault(a, err)
	}
	if held.Status != HeldYes {
		a.superseded()
		return ErrSuperseded
	}
	a.replyStarted.Store(true)
	return nil
}

// superseded cancels the work: a later attempt exists, or may.
func (a *attempt) superseded() { a.cancel(ErrSuperseded) }
