package semel

import (
	"context"
	"sync"
	"time"
)

// heartbeat keeps the time of one attempt: it renews the lease at a third of it,
// and says when the lease has ended unrenewed and when the handler deadline has
// passed. It is one timer and no goroutine, because most work ends before the
// first beat.
type heartbeat struct {
	attempt *attempt
	timer   *time.Timer

	mu       sync.Mutex
	stopped  bool
	nextBeat time.Time // zero while a beat is in flight, and after the last
	deadline time.Time // zero once passed
	localEnd time.Time // of the lease, by our own monotonic clock; zero once passed, and under Hold

	inFlight *detachedContext // of the beat under way
	beating  sync.WaitGroup
}

const (
	beatPart  = 3  // the lease is renewed after this part of it
	retryPart = 10 // a beat that failed is repeated after this part of it
)

// start counts lease and deadline from the attempt's start, which is before
// the store was asked for the claim.
func (h *heartbeat) start(a *attempt) {
	lease := a.guard.cfg.Lease
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempt = a
	if a.call.Mode != Atomic { // there the transaction is the lease
		h.planBeat(a.started, lease)
	}
	h.deadline = a.deadline
	h.timer = time.AfterFunc(time.Until(h.next()), h.tick)
}

// stop ends the heartbeat and waits for a beat in flight, so that no Extend is
// under way when Finish is sent (R16).
func (h *heartbeat) stop() {
	h.mu.Lock()
	h.stopped = true
	h.timer.Stop()
	if h.inFlight != nil {
		h.inFlight.cancel(context.Canceled)
	}
	h.mu.Unlock()
	h.beating.Wait()
}

// planBeat plans what follows a lease that was asked for at that time. Under
// Resume somebody else may run once it has ended, so the work is cancelled then;
// under Hold nobody will, and cutting the work short would only make an unknown
// (R16).
func (h *heartbeat) planBeat(asked time.Time, lease time.Duration) {
	h.nextBeat = asked.Add(lease / beatPart)
	if h.attempt.guard.resumeWithin != 0 {
		h.localEnd = asked.Add(lease)
	}
}

// next is the earliest of beat, local end and deadline, zero if there is none.
func (h *heartbeat) next() time.Time {
	next := h.nextBeat
	for _, t := range [...]time.Time{h.localEnd, h.deadline} {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// arm sets the timer. The caller holds the lock.
func (h *heartbeat) arm() {
	if next := h.next(); !h.stopped && !next.IsZero() {
		h.timer.Reset(time.Until(next))
	}
}

// tick does what is due, and sets the timer for what is left. The timer calls
// it; deadline and local end may come while a beat waits for the store.
func (h *heartbeat) tick() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	now := time.Now()
	past := comes(&h.deadline, now)
	ended := comes(&h.localEnd, now)
	due := comes(&h.nextBeat, now)
	if due {
		h.inFlight = h.attempt.guard.storeContext(h.attempt)
		h.beating.Add(1)
	}
	h.arm()
	h.mu.Unlock()

	if past {
		h.attempt.pastDeadline()
	}
	if ended {
		h.leaseEnded()
	}
	if due {
		h.beat()
	}
}

// comes reports whether a moment has come, which it does once.
func comes(moment *time.Time, now time.Time) bool {
	if moment.IsZero() || now.Before(*moment) {
		return false
	}
	*moment = time.Time{}
	return true
}

// leaseEnded cancels the work, but not while its joined transaction is open:
// that may be what the beat waits for, and is refused if somebody took over.
func (h *heartbeat) leaseEnded() {
	if joint := h.attempt.joint; joint == nil || !joint.Opened() {
		h.attempt.interrupt(ErrSuperseded)
	}
}

// beat renews the lease once and plans the next time.
func (h *heartbeat) beat() {
	defer h.beating.Done()
	ctx := h.inFlight
	g := h.attempt.guard
	sent := time.Now()
	held, err := g.store.Extend(ctx, h.attempt.claim(), ExtendParams{Lease: g.cfg.Lease})
	if err != nil && ctx.Err() != context.Canceled { //nolint:errorlint // a context's own error.
		g.Observe(h.attempt, Event{Kind: EventStoreFault, Err: err})
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	ctx.cancel(context.Canceled)
	switch {
	case h.stopped:
	case err != nil:
		h.nextBeat = time.Now().Add(g.cfg.Lease / retryPart)
	case held.Status == HeldYes:
		h.planBeat(sent, g.cfg.Lease)
	default:
		h.localEnd = time.Time{}
		h.attempt.interrupt(ErrSuperseded)
	}
	h.arm()
}
