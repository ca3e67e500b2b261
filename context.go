package semel

import (
	"context"
	"sync/atomic"
)

// Operation is what the work may know about itself.
type Operation struct {
	ID      OperationID
	Scope   string
	Key     string
	Attempt int64  // 1 for the first; above it an earlier attempt may have had effects
	Trace   string // W3C traceparent of the first attempt
}

// handlerSays holds what a handler declares about its own reply.
type handlerSays struct {
	final      atomic.Bool
	notApplied atomic.Bool
	commit     atomic.Bool
}

// Declared is what the work has declared, read after it returned.
type Declared struct {
	Final      bool // by DeclareFinal
	NotApplied bool // by DeclareNotApplied
	Commit     bool // by Commit
}

type attemptKey struct{}

func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// OperationFrom returns the operation that ctx belongs to, and whether there
// is one.
func OperationFrom(ctx context.Context) (Operation, bool) {
	a := attemptFrom(ctx)
	if a == nil {
		return Operation{}, false
	}
	return a.operation(), true
}

// DeclaredBy returns what the work running under ctx has declared.
func DeclaredBy(ctx context.Context) Declared {
	a := attemptFrom(ctx)
	if a == nil {
		return Declared{}
	}
	return Declared{Final: a.says.final.Load(), NotApplied: a.says.notApplied.Load(), Commit: a.says.commit.Load()}
}

// DeclareFinal says that the reply is the end of the operation and is to be
// kept, whatever its status. Outside an operation it does nothing.
func DeclareFinal(ctx context.Context) {
	if a := attemptFrom(ctx); a != nil {
		a.says.final.Store(true)
	}
}

// DeclareNotApplied says that the operation is known to have had no effect, so
// that the key is released (R1). Outside an operation it does nothing.
func DeclareNotApplied(ctx context.Context) {
	if a := attemptFrom(ctx); a != nil {
		a.says.notApplied.Store(true)
	}
}

// Commit says that the business writes are to be committed together with a
// reply that would otherwise undo them, such as a stored decline with a 4xx
// (R13). Outside an operation it does nothing.
func Commit(ctx context.Context) {
	if a := attemptFrom(ctx); a != nil {
		a.says.commit.Store(true)
	}
}

// MarkReplyStarted saves that bytes of the reply are about to go out, so that
// the operation is never run again from here on (R14). After an error, which
// matches ErrStoreUnavailable or ErrSuperseded, nothing may be sent. Outside an
// operation it does nothing.
func MarkReplyStarted(ctx context.Context) error {
	a := attemptFrom(ctx)
	if a == nil {
		return nil
	}
	return a.markReplyStarted()
}

// SameAttempt reports whether two contexts belong to one attempt, or both to
// none. A Joiner asks it, so that an attempt inside a joined one does not get
// the transaction of the outer: its record would say done while its writes are
// rolled back.
func SameAttempt(a, b context.Context) bool { return attemptFrom(a) == attemptFrom(b) }
