package semel

import (
	"context"
	"sync"
	"time"
)

// heartbeat keeps the time of one attempt: it renews the lease at a third of it,
// and says when the handler deadline has passed. It is one timer and no
// goroutine, because most work ends before the first beat.
type heartbeat struct {
	attempt *attempt
	timer   *time.Timer

	mu       sync.Mutex
	stopped  bool
	nextBeat time.Time // zero while a beat is in flight, and after the last
	deadline time.Time // zero once passed
	localEnd time.Time // of the lease, by our own monotonic clock

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
	h.localEnd = a.started.Add(lease)
	h.nextBeat = a.started.Add(lease / beatPart)
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

// next is the earlier of beat and deadline, zero if there is neither.
func (h *heartbeat) next() time.Time {
	if h.nextBeat.IsZero() || !h.deadline.IsZero() && h.deadline.Before(h.nextBeat) {
		return h.deadline
	}
	return h.nextBeat
}

// arm sets the timer. The caller holds the lock.
func (h *heartbeat) arm() {
	if next := h.next(); !h.stopped && !next.IsZero() {
		h.timer.Reset(time.Until(next))
	}
}

// tick does what is due, and sets the timer for what is left. The timer calls
// it; the deadline may come while a beat waits for the store.
func (h *heartbeat) tick() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	now := time.Now()
	past := !h.deadline.IsZero() && !now.Before(h.deadline)
	if past {
		h.deadline = time.Time{}
	}
	due := false
	if !h.nextBeat.IsZero() && !now.Before(h.nextBeat) {
		h.nextBeat = time.Time{}
		due = true
		h.inFlight = h.attempt.guard.storeContext(h.attempt)
		h.beating.Add(1)
	}
	h.arm()
	h.mu.Unlock()

	if past {
		h.attempt.pastDeadline()
	}
	if due {
		h.beat()
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
		h.planRetry(g.cfg.Lease)
	case held.Status == HeldYes:
		h.localEnd = sent.Add(g.cfg.Lease)
		h.nextBeat = sent.Add(g.cfg.Lease / beatPart)
	default:
		h.attempt.interrupt(ErrSuperseded)
	}
	h.arm()
}

// planRetry plans the next beat after one that failed. Under Resume somebody
// else may run once the lease has ended, so the work is cancelled at its local
// end; under Hold nobody will, and cutting the work short would only make an
// unknown (R16). Nor is it cut short while its joined transaction is open:
// that may be what the beat waits for, and is refused if somebody took over.
func (h *heartbeat) planRetry(lease time.Duration) {
	h.nextBeat = time.Now().Add(lease / retryPart)
	joint := h.attempt.joint
	if h.attempt.guard.resumeWithin == 0 || joint != nil && joint.Opened() {
		return
	}
	if !time.Now().Before(h.localEnd) {
		h.nextBeat = time.Time{}
		h.attempt.interrupt(ErrSuperseded)
		return
	}
	if h.localEnd.Before(h.nextBeat) {
		h.nextBeat = h.localEnd
	}
}
