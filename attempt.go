package semel

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
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
	// Reply is what the caller gets, and repeats too under VerdictKeep. Of
	// VerdictKeepNoReply its status alone is saved, and so it is where the store
	// cannot save the reply, which is logged: the name of a header cannot be read
	// back (see Header), the status has not three digits and is not 0, or it is
	// larger than the store takes (see Bounded).
	Reply Reply
	// Undo rolls the business transaction back and keeps the reply all the
	// same, in a commit of its own (R13).
	Undo bool
}

// attempt is one run of the work under one claim.
type attempt struct {
	detachedContext // of the work
	guard           *Guard
	call            Call
	record          Record
	takeover        bool
	started         time.Time
	heartbeat       heartbeat
	joint           Joint
	atomic          AtomicJoint // the joint, in atomic mode
	says            handlerSays
	replyStarted    atomic.Bool

	// The contexts of the two store calls that every attempt makes, here so that
	// neither is an allocation of its own.
	asking, saving detachedContext

	// Whose turn it is to end the attempt. A channel would be one more allocation
	// for each request.
	turnMu sync.Mutex
	turned sync.Cond
	turn   turn
	ending ending
}

// ending is how the work left: by returning, or not.
type ending struct {
	completion Completion
	panicked   any
	stack      []byte
	goexit     bool
}

var _ context.Context = (*attempt)(nil)

// Value lets the attempt be its own context.
func (a *attempt) Value(key any) any {
	if _, ok := key.(attemptKey); ok {
		return a
	}
	return a.detachedContext.Value(key)
}

// newAttempt prepares a call, which becomes an attempt if it wins the claim.
// Lease and deadline count from here, before the store is asked.
func newAttempt(ctx context.Context, g *Guard, call Call) *attempt {
	a := &attempt{guard: g, call: call, started: time.Now()}
	a.values = ctx
	a.deadline = a.started.Add(g.cfg.HandlerDeadline)
	a.late = ErrStillRunning
	a.turned.L = &a.turnMu
	return a
}

// begin asks the store, again under the record's own fingerprint policy if
// that is another one.
func (a *attempt) begin() (BeginResult, error) {
	g, call := a.guard, &a.call
	g.initStoreContext(&a.asking, a.values)
	p := BeginParams{
		Scope:        call.Scope,
		Key:          call.Key,
		Fingerprint:  call.Fingerprint,
		Token:        NewToken(),
		OperationID:  NewOperationID(g.cfg.Service, call.Scope, call.Key, 0),
		Lease:        g.cfg.Lease,
		ResumeWithin: g.resumeWithin,
		AllInTx:      call.allInTx(),
		Credential:   call.Credential,
		Trace:        call.Trace,
	}
	var to beginner = g.store
	if call.Mode == Atomic {
		to = (*atomicAttempt)(a)
	}
	res, err := g.beginOnce(&a.asking, to, p)
	if err != nil || res.Outcome != BeginMismatch || call.Refingerprint == nil {
		return res, err
	}
	policy := res.Record.Fingerprint.Policy
	if policy == p.Fingerprint.Policy || res.Record.Credential != p.Credential {
		return res, nil
	}
	older, ok := call.Refingerprint(policy)
	if !ok || !older.Same(res.Record.Fingerprint) {
		return res, nil
	}
	p.Fingerprint = older
	return g.beginOnce(g.storeContext(a.values), to, p)
}

// atomicAttempt is an attempt as the beginner that it is in atomic mode.
type atomicAttempt attempt

// Begin claims in the business transaction, and keeps it for the work.
func (a *atomicAttempt) Begin(ctx context.Context, p BeginParams) (BeginResult, error) {
	res, joint, err := a.guard.atomic.BeginAtomic(ctx, p, a.guard.cfg.HandlerDeadline)
	if err == nil && res.Outcome == BeginClaimed {
		a.joint, a.atomic = joint, joint
	}
	return res, err
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

// turn says who ends the attempt: the caller once the work has returned, or
// the work's own goroutine once the caller has been answered at the deadline.
type turn uint8

const (
	turnOpen turn = iota
	turnWorkReturned
	turnCallerLeft
)

// take moves an open turn to t, and reports whether it was open.
func (a *attempt) take(t turn, end ending) bool {
	a.turnMu.Lock()
	defer a.turnMu.Unlock()
	if a.turn != turnOpen {
		return false
	}
	a.turn, a.ending = t, end
	a.turned.Signal()
	return true
}

func (a *attempt) awaitTurn() turn {
	a.turnMu.Lock()
	defer a.turnMu.Unlock()
	for a.turn == turnOpen {
		a.turned.Wait()
	}
	return a.turn
}

// run runs the work on a goroutine of its own, so that the caller can be
// answered at the deadline while a work that ignores its context goes on
// (R19).
func (a *attempt) run(work func(context.Context) Completion) (Result, error) {
	if a.call.Mode == Joined {
		a.joint = a.guard.joiner.Join(a.claim())
	}
	a.heartbeat.start(a)
	go a.work(work)
	if a.awaitTurn() == turnCallerLeft {
		a.observe(EventStillRunning)
		return Result{Outcome: OutcomeUnknown, Ran: true, Takeover: a.takeover, Record: a.record}, ErrStillRunning
	}
	return a.conclude(a.ending)
}

// pastDeadline lets the caller go. The context of the work ends by itself: to
// cancel it as well would have it end in one of two ways, by chance. Asking for
// Done makes sure that its cause can be found.
func (a *attempt) pastDeadline() {
	a.Done()
	a.take(turnCallerLeft, ending{})
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
		if !a.take(turnWorkReturned, end) {
			a.concludeAlone(end)
		}
	}()
	var ctx context.Context = a
	if a.joint != nil {
		ctx = a.joint.Context(ctx)
	}
	end.completion = work(ctx)
	end.goexit = false
}

// concludeAlone ends an attempt whose caller was answered at the deadline.
func (a *attempt) concludeAlone(end ending) {
	log := a.guard.cfg.Logger.With("operation_id", a.record.OperationID.String(), "attempt", a.record.Attempt)
	res, err := a.finish(end.completion)
	switch {
	case end.panicked != nil:
		log.Error("semel: work panicked after its deadline", "panic", fmt.Sprint(end.panicked), "stack", string(end.stack))
	case end.goexit:
		log.Error("semel: work ended its goroutine after its deadline")
	case err != nil && res.Record.State != StateRunning: // its transaction was refused, or another attempt has ended the operation
		log.Warn("semel: work returned after its deadline and what it returned does not count", "state", res.Record.State.String(), "error", err)
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
		panic(end.panicked) //nolint:forbidigo // it is the work's own.
	case end.goexit:
		return res, ErrGoexit
	}
	return res, err
}

func (a *attempt) observe(kind EventKind) {
	took := time.Since(a.started)
	a.guard.Observe(a, Event{
		Kind:        kind,
		Route:       a.call.Route,
		OperationID: a.record.OperationID,
		Attempt:     a.record.Attempt,
		Duration:    took,
		SinceFirst:  a.record.Claimed.Sub(a.record.FirstStarted) + took,
	})
}

// markReplyStarted saves the mark once.
func (a *attempt) markReplyStarted() error {
	if a.replyStarted.Load() {
		return nil
	}
	if a.call.Mode == Atomic {
		return configError("Mode", "is Atomic: no reply starts before its claim is committed")
	}
	ctx := a.guard.storeContext(a)
	defer ctx.cancel(context.Canceled)
	held, err := a.guard.store.Extend(ctx, a.claim(), ExtendParams{Lease: a.guard.cfg.Lease, ReplyStarted: true})
	if err != nil {
		return a.guard.storeFault(a, err)
	}
	if held.Status != HeldYes {
		a.interrupt(ErrSuperseded)
		return ErrSuperseded
	}
	a.replyStarted.Store(true)
	return nil
}
