package semel

import (
	"context"
	"fmt"
)

// Eraser is the ability of a store to forget what a record answers before its
// retention ends, as for a person who asks for it.
type Eraser interface {
	// Erase applies [Record.Erase] to a record, with a line in the audit log if
	// it changed.
	Erase(ctx context.Context, scope, key string, a Audit) (EraseResult, error)
}

// EraseOutcome says what Erase found.
type EraseOutcome uint8

// The outcomes of Erase.
const (
	// EraseDone means the reply is gone; what is left says that the operation
	// is done, and with which status.
	EraseDone EraseOutcome = iota + 1
	// EraseNothing means there is no reply to erase, or no record.
	EraseNothing
	// EraseRefused means the record is running or unknown, so that a reply may
	// still be saved after it.
	EraseRefused
)

var eraseOutcomeNames = [...]string{"none", "erased", "nothing", "refused"}

// String returns the outcome in words.
func (o EraseOutcome) String() string {
	if int(o) < len(eraseOutcomeNames) {
		return eraseOutcomeNames[o]
	}
	return "invalid"
}

// EraseResult is the outcome with the record as it is after the call.
type EraseResult struct {
	Outcome EraseOutcome
	Record  Record
}

// AuditEntry returns the line that an Erase with this result leaves in the
// log, or nil: there is one for each reply that is erased, however often that
// is asked for.
func (res *EraseResult) AuditEntry(a Audit) *AuditEntry {
	if res.Outcome != EraseDone {
		return nil
	}
	e := res.Record.auditEntry(a)
	e.To = StateAbsent
	return e
}

// EraseParams is what Guard.Erase needs.
type EraseParams struct {
	Scope string
	Key   string
	// Actor and Reason are required and go to the audit log.
	Actor  string
	Reason string
}

// Erase drops the saved headers and body of a done operation. Repeats are told
// from then on that the reply was not kept, as long as the record is; the
// operation never runs again. Where there is no reply nothing changes. A record
// that is running or unknown is refused with ErrEraseRefused, and a store that
// is no Eraser with ErrConfig.
func (g *Guard) Erase(ctx context.Context, p EraseParams) (EraseResult, error) {
	switch {
	case p.Actor == "":
		return EraseResult{}, configError("Actor", "is required: who erases")
	case p.Reason == "":
		return EraseResult{}, configError("Reason", "is required: what for")
	}
	eraser, ok := As[Eraser](g.store)
	if !ok {
		return EraseResult{}, configError("store", fmt.Sprintf("(%T) cannot erase a reply", g.store))
	}
	call := g.storeContext(ctx)
	defer call.cancel(context.Canceled)
	res, err := eraser.Erase(call, p.Scope, p.Key, Audit{Actor: p.Actor, Reason: p.Reason})
	if err != nil {
		return res, g.storeFault(ctx, err)
	}
	if res.Outcome == EraseRefused {
		return res, ErrEraseRefused.saying("the record is %v: a reply may still be saved; settle it first", res.Record.State)
	}
	return res, nil
}
