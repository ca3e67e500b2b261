package semel

import (
	"fmt"
	"math"
	"time"
)

// Forever says that what an operation calls never forgets its operation id, or
// that all its effects are in its joined transaction. In leased mode, work that
// was done and not recorded runs again. For use with [Resume].
const Forever time.Duration = math.MaxInt64

// Recovery says what an attempt with no known end means. It is a required
// choice, because only the caller knows whether the work can be repeated
// (R2). The zero value is no choice and is refused by [New].
type Recovery struct {
	kind   recoveryKind
	memory time.Duration // under resume
}

type recoveryKind uint8

const (
	noRecovery recoveryKind = iota
	hold
	resume
)

// Hold lets nobody run the operation again until somebody settles what
// happened. It is the right choice when the work calls something that does
// not recognise the operation id.
func Hold() Recovery { return Recovery{kind: hold} }

// Resume lets the next request run the operation again under the same
// operation id. The argument is how long everything the work calls remembers
// that id: see [Forever]. An operation whose first attempt is older than that,
// less one handler deadline, is not run again (R8).
func Resume(memory time.Duration) Recovery { return Recovery{kind: resume, memory: memory} }

// String returns the recovery as it is written in configuration and in
// /.well-known/idempotency: "hold", "resume:24h0m0s" or "resume:forever".
func (r Recovery) String() string {
	switch {
	case r.kind == noRecovery:
		return "none"
	case r.kind == hold:
		return "hold"
	case r.memory == Forever:
		return "resume:forever"
	default:
		return "resume:" + r.memory.String()
	}
}

// resumeWithin is how long after its first start an attempt with no known
// end may run again. Zero is never.
func (r Recovery) resumeWithin(handlerDeadline time.Duration) time.Duration {
	if r.kind == hold || r.memory == Forever {
		return r.memory
	}
	return r.memory - handlerDeadline
}

// leastRetention is the shortest retention under which a key never outlives
// the downstream's memory of its operation id (M9): past it, the same key
// with another request would meet the first request's charge.
func (r Recovery) leastRetention(handlerDeadline time.Duration) time.Duration {
	if r.kind == hold || r.memory == Forever {
		return 0
	}
	return r.resumeWithin(handlerDeadline) + r.memory
}

func (r Recovery) check(handlerDeadline time.Duration) error {
	switch {
	case r.kind == noRecovery:
		return configError("Recovery", "is required: Hold(), or Resume(d) with d = how long what you call remembers an operation id")
	case r.kind == hold:
		return nil
	case r.memory <= 0:
		return configError("Recovery", fmt.Sprintf("Resume(%v): the duration must be positive", r.memory))
	case r.memory <= handlerDeadline:
		return configError("Recovery", fmt.Sprintf("Resume(%v) must be longer than HandlerDeadline (%v): no repeat would ever be in time", r.memory, handlerDeadline))
	case r.memory != Forever && r.memory > maxDuration:
		return configError("Recovery", fmt.Sprintf("Resume(%v) is too long to add up; use Forever", r.memory))
	}
	return nil
}
