package semel

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one store call: the values of the caller's
// context, a deadline of its own, and no cancellation from outside. It makes
// its timer only if somebody asks for Done, which a store that does not wait
// for anything never does.
type callContext struct {
	values   context.Context
	deadline time.Time

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
	ended  bool
}

var _ context.Context = (*callContext)(nil)

func newCallContext(values context.Context, timeout time.Duration) *callContext {
	return &callContext{values: values, deadline: time.Now().Add(timeout)}
}

// Deadline returns when the call must have ended.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns the channel of the context made on first use.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithDeadline(context.WithoutCancel(c.values), c.deadline)
		if c.ended {
			c.cancel()
		}
	}
	return c.inner.Done()
}

// Err returns nil while the call may go on.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.ended:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the inner context where there is one, so that contexts derived
// from this one find what cancels them without a goroutine each.
func (c *callContext) Value(key any) any {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return c.values.Value(key)
}

func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}
