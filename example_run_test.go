package semel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
)

// Run is for adapters, whose work says itself what its end means: here a reply
// with a status of its own, which repeats get as it was.
func ExampleGuard_Run() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := semel.Call{Scope: "jobs", Key: "job-1", Fingerprint: semel.FingerprintOf([]byte("resize"))}
	work := func(context.Context) semel.Completion {
		fmt.Println("working")
		return semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Status: 201, Body: []byte("resized")}}
	}
	for range 2 {
		res, err := guard.Run(context.Background(), call, work)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Outcome, res.Reply.Status, string(res.Reply.Body))
	}
	// Output:
	// working
	// executed 201 resized
	// replayed 201 resized
}

// An error that leaves no doubt is wrapped, and the key is free again. Any other
// error leaves the outcome unknown.
func ExampleNotApplied() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := semel.Call{Scope: "charges", Key: "order-42", Fingerprint: semel.FingerprintOf([]byte("2500"))}
	errClosed := errors.New("the bank is closed: it was not called")
	for _, open := range []bool{false, true} {
		res, err := guard.Do(context.Background(), call, func(context.Context) ([]byte, error) {
			if !open {
				return nil, semel.NotApplied(errClosed)
			}
			return []byte("receipt 1"), nil
		})
		fmt.Println(res.Outcome, errors.Is(err, errClosed))
	}
	// Output:
	// released true
	// executed false
}

// A sweeper gives the space of expired records back, until its context ends.
func ExampleSweeper() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sweeper, err := semel.NewSweeper(store, semel.SweeperConfig{Interval: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- sweeper.Run(ctx) }()
	// The service runs.
	stop()
	fmt.Println(<-stopped)
	// Output: context canceled
}
