package semel

import (
	"context"
	"sync/atomic"
	"time"
)

// EventKind names something worth counting.
type EventKind uint8

// The kinds of event.
const (
	// EventClaimed is the first attempt of a record.
	EventClaimed EventKind = iota + 1
	// EventTakeover is a claim over an attempt without a known end.
	EventTakeover
	// EventReclaimed is a claim of a released record.
	EventReclaimed
	// EventReplayed is a saved reply shown again.
	EventReplayed
	// EventReplyNotKept is a repeat of a done operation without a saved reply.
	EventReplyNotKept
	// EventInProgress is a repeat while the first attempt runs.
	EventInProgress
	// EventKeyReused is another request under a used key.
	EventKeyReused
	// EventOtherCaller is another credential under a used key.
	EventOtherCaller
	// EventOutcomeUnknown is a repeat that may not run and has no reply.
	EventOutcomeUnknown
	// EventDone is an attempt that ended done.
	EventDone
	// EventReleased is an attempt that ended released.
	EventReleased
	// EventUnknown is an attempt that ended unknown.
	EventUnknown
	// EventLeaseLost is an attempt that found itself superseded.
	EventLeaseLost
	// EventStillRunning is an attempt past its deadline.
	EventStillRunning
	// EventStoreFault is a store call that failed.
	EventStoreFault
	// EventRequest is a request that a layer around the guard, such as
	// semelhttp, has dealt with: one for each, also where the guard was not
	// asked.
	EventRequest
	// EventSweep is a sweep of a Sweeper, also one that was another's turn.
	EventSweep

	eventKinds // how many there are
)

var eventNames = [eventKinds]string{
	"none", "claimed", "takeover", "reclaimed", "replayed", "reply_not_kept", "in_progress", "key_reused",
	"other_caller", "outcome_unknown", "done", "released", "unknown", "lease_lost", "still_running", "store_fault",
	"request", "sweep",
}

// String returns the kind in snake_case.
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return "invalid"
}

// Event is one thing that happened to one key, or to the store. It carries no
// key and no scope, so that neither can become a label.
type Event struct {
	Kind        EventKind
	Route       string // as in Call.Route
	OperationID OperationID
	Attempt     int64
	// Duration is that of the attempt, for the kinds that end one, of the
	// request for EventRequest, and of the sweep for EventSweep.
	Duration time.Duration
	// SinceFirst is how long ago the operation was first claimed, for the
	// kinds that end an attempt.
	SinceFirst time.Duration
	// ReplyAge is how long ago, on the store's clock, the operation ended that
	// EventReplayed and EventReplyNotKept repeat.
	ReplyAge time.Duration
	// Outcome says what became of the request of an EventRequest, and Problem
	// is the code of its error answer, if it got one, or of the one in whose
	// place it ran unprotected. Both are words of few.
	Outcome string
	Problem string
	Err     error // of EventStoreFault, and of an EventSweep that failed
	// Removed is how many records an EventSweep has removed, and Lag for how
	// long the first to expire of those that are left has been expired; it is
	// negative where the store does not say.
	Removed int
	Lag     time.Duration
	// Stuck is, of an EventSweep, how long ago the oldest operation that waits
	// for somebody first started, as Record.Stuck says after DefaultStuckAfter.
	// It is zero where there is none, and negative where the store does not say.
	Stuck time.Duration
}

// Observer is told what happens, on the goroutine it happens on: it must not
// block.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

var _ Observer = (*Counters)(nil)

// Counters is an Observer that counts. The zero value is ready.
type Counters struct {
	counts [eventKinds]atomic.Int64
}

// Observe counts e.
func (c *Counters) Observe(_ context.Context, e Event) {
	if e.Kind < eventKinds {
		c.counts[e.Kind].Add(1)
	}
}

// Count returns how many events of kind k there were.
func (c *Counters) Count(k EventKind) int64 { return c.counts[k].Load() }

// Snapshot returns all counts above zero, by name.
func (c *Counters) Snapshot() map[string]int64 {
	m := make(map[string]int64)
	for k := range c.counts {
		if n := c.counts[k].Load(); n > 0 {
			m[EventKind(k).String()] = n
		}
	}
	return m
}
