package semel

import (
	"context"
	"sync"
	"time"
)

// pulse keeps the time of one attempt: it renews the lease at a third of it,
// and says when the handler deadline has passed. It is one timer and no
// goroutine, because most work ends before the first beat.
type pulse struct {
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
func (p *pulse) start(a *attempt) {
	lease := a.guard.cfg.Lease
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempt = a
	p.localEnd = a.started.Add(lease)
	if a.call.Mode != Atomic { // there the transaction is the lease
		p.nextBeat = a.started.Add(lease / beatPart)
	}
	p.deadline = a.deadline
	p.timer = time.AfterFunc(time.Until(p.next()), p.tick)
}

// stop ends the pulse and waits for a beat in flight, so that no Extend is
// under way when Finish is sent (R16).
func (p *pulse) stop() {
	p.mu.Lock()
	p.stopped = true
	p.timer.Stop()
	if p.inFlight != nil {
		p.inFlight.cancel(context.Canceled)
	}
	p.mu.Unlock()
	p.beating.Wait()
}

// next is the earlier of beat and deadline, zero if there is neither.
func (p *pulse) next() time.Time {
	if p.nextBeat.IsZero() || !p.deadline.IsZero() && p.deadline.Before(p.nextBeat) {
		return p.deadline
	}
	return p.nextBeat
}

// arm sets the timer. The caller holds the lock.
func (p *pulse) arm() {
	if next := p.next(); !p.stopped && !next.IsZero() {
		p.timer.Reset(time.Until(next))
	}
}

func (p *pulse) tick() {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return
	}
	now := time.Now()
	past := !p.deadline.IsZero() && !now.Before(p.deadline)
	if past {
		p.deadline = time.Time{}
	}
	due := false
	if !p.nextBeat.IsZero() && !now.Before(p.nextBeat) {
		p.nextBeat = time.Time{}
		due = true
		p.inFlight = p.attempt.guard.storeContext(p.attempt)
		p.beating.Add(1)
	}
	p.arm()
	p.mu.Unlock()

	if past {
		p.attempt.pastDeadline()
	}
	if due {
		p.beat()
	}
}

// beat renews the lease once and plans the next time.
func (p *pulse) beat() {
	defer p.beating.Done()
	ctx := p.inFlight
	g := p.attempt.guard
	sent := time.Now()
	held, err := g.store.Extend(ctx, p.attempt.claim(), ExtendParams{Lease: g.cfg.Lease})
	if err != nil && ctx.Err() != context.Canceled { //nolint:errorlint // a context's own error.
		g.Observe(p.attempt, Event{Kind: EventStoreFault, Err: err})
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	ctx.cancel(context.Canceled)
	switch {
	case p.stopped:
	case err != nil:
		p.planRetry(g.cfg.Lease)
	case held.Status == HeldYes:
		p.localEnd = sent.Add(g.cfg.Lease)
		p.nextBeat = sent.Add(g.cfg.Lease / beatPart)
	default:
		p.attempt.interrupt(ErrSuperseded)
	}
	p.arm()
}

// planRetry plans the next beat after one that failed. Under Resume somebody
// else may run once the lease has ended, so the work is cancelled at its local
// end; under Hold nobody will, and cutting the work short would only make an
// unknown (R16). Nor is it cut short while its joined transaction is open:
// that may be what the beat waits for, and is refused if somebody took over.
func (p *pulse) planRetry(lease time.Duration) {
	p.nextBeat = time.Now().Add(lease / retryPart)
	joint := p.attempt.joint
	if p.attempt.guard.resumeWithin == 0 || joint != nil && joint.Opened() {
		return
	}
	if !time.Now().Before(p.localEnd) {
		p.nextBeat = time.Time{}
		p.attempt.interrupt(ErrSuperseded)
		return
	}
	if p.localEnd.Before(p.nextBeat) {
		p.nextBeat = p.localEnd
	}
}
