package semel

import (
	"context"
	"sync"
	"time"
)

// detachedContext has the values of another context, a deadline of its own,
// and none of the other's cancellation: what a caller asked for goes on when
// the caller hangs up. It makes timer and channel only when somebody asks for
// Done, which most work on a fast store never does.
type detachedContext struct {
	values   context.Context
	deadline time.Time
	late     error // the cause once the deadline has passed

	mu    sync.Mutex
	inner context.Context
	end   func(cause error) // ends inner
	cause error             // of an early end
}

var _ context.Context = (*detachedContext)(nil)

// Deadline returns the deadline.
func (c *detachedContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns the channel of the context made on first use.
func (c *detachedContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		early, cancel := context.WithCancelCause(context.WithoutCancel(c.values))
		inner, stop := context.WithDeadlineCause(early, c.deadline, c.late)
		c.inner = inner
		c.end = func(cause error) {
			cancel(cause)
			stop()
		}
		if c.cause != nil {
			c.end(c.cause)
		}
	}
	return c.inner.Done()
}

// Err returns nil while work may go on.
func (c *detachedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.cause != nil:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the inner context where there is one, so that contexts derived
// from this one find what cancels them without a goroutine each.
func (c *detachedContext) Value(key any) any {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.values.Value(key)
}

// cancel ends the context early. The first cause counts.
func (c *detachedContext) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	if c.end != nil {
		c.end(c.cause)
	}
}

// interrupt ends the context early for somebody who may want to know why:
// context.Cause finds a cause only in a context of the standard library.
func (c *detachedContext) interrupt(cause error) {
	c.Done()
	c.cancel(cause)
}
