package semelclient

import (
	"context"
	"errors"
	"sync"
)

// Recover finishes the intents that earlier calls and earlier processes left in
// the store, and hands the result of each to book, several at once. Where book
// returns nil and the outcome is known, the intent is forgotten; so book writes
// down what became of it, and may be told the same again if a crash comes in
// between. What is still Unknown stays: run Recover at the start and now and then.
// Intents that somebody else is at work on are left to them.
//
// It returns when it has been through the store or ctx has ended. The error joins
// those of book and the store, ErrIntentDamaged among them: such an intent is
// never sent, and stays.
func (c *Client) Recover(ctx context.Context, book func(r Result) error) error {
	var (
		faults []error
		mu     sync.Mutex
		work   sync.WaitGroup
		free   = make(chan struct{}, c.cfg.Parallel)
	)
	failed := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, err)
	}
	for key, err := range c.store.Keys(ctx) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed(storeFailed(err, "list its intents"))
			continue
		}
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			if err := c.recoverOne(ctx, key, book); err != nil {
				failed(err)
			}
		})
	}
	work.Wait()
	return errors.Join(append(faults, ctx.Err())...)
}

func (c *Client) recoverOne(ctx context.Context, key string, book func(Result) error) error {
	r := c.Do(ctx, Intent{Key: key})
	switch {
	case errors.Is(r.Err, ErrIntentHeld), errors.Is(r.Err, ErrIntentMissing):
		return nil // somebody else's, or forgotten meanwhile
	case r.Reason == ReasonStore:
		return r.Err
	}
	if err := book(r); err != nil || !r.Settled() {
		return err
	}
	return c.Forget(ctx, key)
}
