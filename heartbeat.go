package semel

import (
	"context"
	"sync"
	"time"
)

// heartbeat renews the lease of one attempt at a third of it. It is a timer,
// not a goroutine: most work ends before the first beat.
type heartbeat struct {
	attempt *attempt
	timer   *time.Timer

	mu       sync.Mutex
	stopped  bool
	cancel   context.CancelFunc // of the beat in flight
	inFlight sync.WaitGroup
	localEnd time.Time // the lease by our own monotonic clock
}

// retryPart of a lease is waited after a beat that failed.
const retryPart = 10

func (h *heartbeat) start(a *attempt) {
	h.attempt = a
	lease := a.guard.cfg.Lease
	h.localEnd = a.started.Add(lease)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(lease/3, h.tick)
}

// stop ends the heartbeat and waits for a beat in flight, so that no Extend is
// under way when Finish is sent (R16).
func (h *heartbeat) stop() {
	h.mu.Lock()
	h.stopped = true
	h.timer.Stop()
	if h.cancel != nil {
		h.cancel()
	}
	h.mu.Unlock()
	h.inFlight.Wait()
}

func (h *heartbeat) tick() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	g := h.attempt.guard
	ctx, cancel := g.storeContext(h.attempt)
	h.cancel = cancel
	h.inFlight.Add(1)
	h.mu.Unlock()

	defer h.inFlight.Done()
	defer cancel()
	sent := time.Now()
	held, err := g.store.Extend(ctx, h.attempt.claim(), ExtendParams{Lease: g.cfg.Lease})

	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
	case err != nil:
		g.Observe(h.attempt, Event{Kind: EventStoreFault, Err: err})
		h.afterFault(g.cfg.Lease)
	case held.Status == HeldSuperseded:
		h.attempt.superseded()
	case held.Status == HeldYes:
		h.localEnd = sent.Add(g.cfg.Lease)
		h.timer.Reset(g.cfg.Lease / 3)
	}
}

// afterFault tries again soon. Under Resume somebody else may run once the
// lease has ended, so the work is cancelled at its local end; under Hold
// nobody will, and cutting the work short would only make an unknown (R16).
func (h *heartbeat) afterFault(lease time.Duration) {
	wait := lease / retryPart
	if h.attempt.guard.resumeWithin != 0 {
		left := time.Until(h.localEnd)
		if left <= 0 {
			h.attempt.superseded()
			return
		}
		wait = min(wait, left)
	}
	h.timer.Reset(wait)
}
