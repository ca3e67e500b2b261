package semel

import (
	"context"
	"time"
)

// Store keeps one record for each (scope, key). Strangers may implement it;
// package storetest is the contract in runnable form, and the transitions
// themselves are [Record.Begin], [Record.Extend], [Record.Finish] and
// [Record.Sweep], which a store that can run Go beside its data should call.
//
// Four rules hold for every method. The store's clock decides, so durations go
// in and never instants. Scope and key are compared as bytes (R11). Outcomes
// are values and errors are faults: after an error the caller does not know
// whether the call took effect. A statement has a limit on the server that is
// shorter than the caller's own, so that a caller who gave up knows that
// nothing of it can still execute (R15, M10).
type Store interface {
	// Begin claims (p.Scope, p.Key), or says why it cannot be claimed. A
	// token claims at most once: repeating Begin with the record's latest
	// token returns that claim's present state, with the lease renewed while
	// it runs. A replay writes nothing and locks nothing.
	Begin(ctx context.Context, p BeginParams) (BeginResult, error)

	// Extend renews the lease of a running claim, lapsed or not, unless a
	// later attempt exists. On a record already unknown it renews nothing.
	Extend(ctx context.Context, c Claim, p ExtendParams) (Held, error)

	// Finish ends a claim, lapsed or not, unless a later attempt exists. It
	// is idempotent for the same claim and outcome. Done and released are
	// final: another outcome is refused. Unknown may still become either
	// (M5).
	Finish(ctx context.Context, c Claim, p FinishParams) (Held, error)

	// Get reads the record as it is, expired or not. Where there is none it
	// returns a record in StateAbsent and no error.
	Get(ctx context.Context, scope, key string) (Record, error)

	// Sweep removes at most limit expired records and returns how many. It
	// tests expiry again in the statement that deletes, leaves a tombstone
	// where the generation is above zero (M8), and never touches running or
	// unknown records (R25).
	Sweep(ctx context.Context, limit int) (int, error)
}

// BeginParams is what Begin needs.
type BeginParams struct {
	Scope       string
	Key         string
	Fingerprint Fingerprint
	Token       Token       // of this caller; a new one for each request
	OperationID OperationID // of generation 0; a tombstone's own id wins

	Lease time.Duration // from now, on the store's clock

	// ResumeWithin is how long after its first start an attempt without a
	// known end may be run again by this caller. Zero is Hold: never.
	ResumeWithin time.Duration

	// AllInTx says that every effect of this attempt is inside a transaction
	// that is refused once it is superseded, so that taking over from it
	// leaves nothing open.
	AllInTx bool

	Credential Digest // zero unless the scope does not tell callers apart
	Trace      string // W3C traceparent, saved with the first attempt

	// Force makes the Begin a settlement by an operator or the service.
	Force *Force
}

// Force lets an operator take over a record that nobody may claim. It is
// refused, with the record's present state, while the lease is live, when the
// record has moved on from Attempt and Token (M7), and before the latest claim
// is QuietFor old on the store's clock (M6).
type Force struct {
	Attempt  int64
	Token    Token
	QuietFor time.Duration // zero does not wait: see Audit.Override
	Audit    Audit
}

// BeginOutcome says what Begin found.
type BeginOutcome uint8

// The outcomes of Begin.
const (
	// BeginClaimed means the caller holds the claim and must run.
	BeginClaimed BeginOutcome = iota + 1
	// BeginReplay means the operation is done.
	BeginReplay
	// BeginBusy means another attempt holds a live lease.
	BeginBusy
	// BeginMismatch means the record is of another request, or of another
	// caller's credential.
	BeginMismatch
	// BeginUnknown means an earlier attempt has no known end and may not be
	// run again.
	BeginUnknown
	// BeginReleased means the caller's own token was released already.
	BeginReleased
)

var beginOutcomeNames = [...]string{"none", "claimed", "replay", "busy", "mismatch", "unknown", "released"}

// String returns the outcome in words.
func (o BeginOutcome) String() string {
	if int(o) < len(beginOutcomeNames) {
		return beginOutcomeNames[o]
	}
	return "invalid"
}

// BeginResult is the outcome with the record as it is after the call.
type BeginResult struct {
	Outcome BeginOutcome
	Record  Record
	// From is the state in which a new claim found the record: StateRunning
	// and StateUnknown are takeovers, and an expired record counts as absent.
	// It is zero where a token finds its own claim again.
	From State
}

// ExtendParams is what Extend needs.
type ExtendParams struct {
	Lease time.Duration // from now, on the store's clock
	// ReplyStarted marks that bytes of the reply are about to go out; from
	// then on the record is never run again, whatever the recovery.
	ReplyStarted bool
}

// FinishParams is what Finish needs.
type FinishParams struct {
	// To is StateDone, StateReleased or StateUnknown.
	To State
	// Reply is saved with StateDone when KeepReply is set; otherwise only its
	// status is. The store copies what it keeps.
	Reply     Reply
	KeepReply bool
	// Retention runs from now for done and released records.
	Retention time.Duration
	// Settlement marks the end of a forced claim.
	Settlement *Settlement
}

// Settlement is somebody's word on what happened. It closes what earlier
// attempts left open.
type Settlement struct {
	Audit Audit
	// StartOver, with StateReleased, raises the generation: the operation id
	// is this one from now on.
	StartOver OperationID
}

// HeldStatus says how a store took an Extend or a Finish.
type HeldStatus uint8

// The answers of Extend and Finish.
const (
	// HeldYes means the claim is the latest and the call has taken effect.
	HeldYes HeldStatus = iota + 1
	// HeldSuperseded means a later attempt exists, or the record is gone.
	HeldSuperseded
	// HeldFinal means the claim had already ended with another outcome.
	HeldFinal
)

var heldStatusNames = [...]string{"none", "yes", "superseded", "final"}

// String returns the answer in words.
func (s HeldStatus) String() string {
	if int(s) < len(heldStatusNames) {
		return heldStatusNames[s]
	}
	return "invalid"
}

// Held is the answer of Extend and Finish, with the record's present state.
type Held struct {
	Status HeldStatus
	State  State
}
