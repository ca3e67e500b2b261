package semel

import (
	"context"
	"time"
)

// Outcome says what became of a call.
type Outcome uint8

// The outcomes of a call.
const (
	// OutcomeExecuted: this call ran the work and the operation is done.
	OutcomeExecuted Outcome = iota + 1
	// OutcomeReplayed: the operation was done before; this is its saved reply.
	OutcomeReplayed
	// OutcomeReplyNotKept: the operation was done before; its reply was not kept.
	OutcomeReplyNotKept
	// OutcomeInProgress: another attempt is running.
	OutcomeInProgress
	// OutcomeKeyReused: the key belongs to another request.
	OutcomeKeyReused
	// OutcomeOtherCaller: the key belongs to another credential.
	OutcomeOtherCaller
	// OutcomeUnknown: an attempt has no known end: this call's own, if
	// Result.Ran, or an earlier one that may not be run again.
	OutcomeUnknown
	// OutcomeReleased: the work is known to have had no effect; the key is free.
	OutcomeReleased
)

var outcomeNames = [...]string{
	"none", "executed", "replayed", "reply-not-kept", "in-progress", "key-reused", "other-caller", "unknown", "released",
}

// String returns the outcome in words.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// Result is the outcome of a call. Errors are for faults only: the store, the
// configuration, a deadline.
type Result struct {
	Outcome Outcome
	// Ran is set when this call ran the work, and no later attempt has taken
	// over: the outcome is of its own run then.
	Ran bool
	// Takeover is set with Ran when an earlier attempt had no known end when
	// this call ran the work.
	Takeover bool
	// Reply is the work's own reply if this call ran it, else the saved one
	// if there is one. Of OutcomeReplyNotKept it holds the status alone.
	Reply Reply
	// Record is the record as the call last saw it, without its reply.
	Record Record
	// RetryAfter is how long to wait before the same key is worth sending
	// again, for OutcomeInProgress.
	RetryAfter time.Duration
	// UnknownPolicy qualifies OutcomeKeyReused: the record's fingerprint policy is
	// not loaded, so the two requests could not be compared.
	UnknownPolicy bool
}

// Done reports whether the operation is done and Reply is its reply. A call
// that returns no error need not be: the key may be in use, or the outcome
// unknown.
func (r Result) Done() bool { return r.Outcome == OutcomeExecuted || r.Outcome == OutcomeReplayed }

// answer turns what a Begin that did not claim found into a result.
func (g *Guard) answer(ctx context.Context, call Call, begun BeginResult) (Result, error) {
	rec := begun.Record
	res := Result{}
	kind := EventOutcomeUnknown
	switch begun.Outcome {
	case BeginReplay:
		if call.BeforeReplay != nil {
			if err := call.BeforeReplay(rec); err != nil {
				return Result{Record: rec.withoutReply()}, ErrReplayRefused.because(unmarked(err))
			}
		}
		res.Reply = rec.Reply
		res.Outcome, kind = OutcomeReplayed, EventReplayed
		if !rec.ReplyKept {
			res.Outcome, kind = OutcomeReplyNotKept, EventReplyNotKept
		}
	case BeginBusy:
		res.Outcome, kind = OutcomeInProgress, EventInProgress
		// Where whoever holds it has lapsed since it is worth trying at once.
		res.RetryAfter = max(0, min(rec.LeaseLeft(), max(time.Second, rec.AttemptAge())))
	case BeginMismatch:
		res.Outcome, kind = OutcomeKeyReused, EventKeyReused
		res.UnknownPolicy = call.policyUnknown(rec.Fingerprint.Policy)
		if rec.Credential != call.Credential {
			res.Outcome, kind = OutcomeOtherCaller, EventOtherCaller
		}
	case BeginReleased:
		res.Outcome, kind = OutcomeReleased, EventReleased
	default:
		res.Outcome = OutcomeUnknown
	}
	res.Record = rec.withoutReply()
	e := Event{Kind: kind, Route: call.Route, OperationID: rec.OperationID, Attempt: rec.Attempt}
	switch begun.Outcome {
	case BeginReplay:
		e.ReplyAge = rec.Now.Sub(rec.Finished)
	case BeginReleased:
		e.SinceFirst = rec.Finished.Sub(rec.FirstStarted)
	}
	g.Observe(ctx, e)
	return res, nil
}
