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
	EventClaimed EventKind = iota
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

	eventKinds // how many there are
)

var eventNames = [eventKinds]string{
	"claimed", "takeover", "reclaimed", "replayed", "reply_not_kept", "in_progress", "key_reused",
	"other_caller", "outcome_unknown", "done", "released", "unknown", "lease_lost", "still_running", "store_fault",
}

// String returns the kind in snake_case.
func (k EventKind) String() string {
	if k < eventKinds {
		return eventNames[k]
	}
	return "invalid"
}

// Event is one thing that happened to one key. It carries no key and no
// scope, so that neither can become a label.
type Event struct {
	Kind        EventKind
	OperationID OperationID
	Attempt     int64
	Duration    time.Duration // of the attempt, for the kinds that end one
	Err         error         // of EventStoreFault
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
func (c *Counters) Observe(_ context.Context, e Event) { c.counts[e.Kind].Add(1) }

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
