package semel_test

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
)

// A function that charges a card, called twice for one order: it runs once,
// and both calls get the receipt.
func ExampleGuard_Do() {
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
	call := semel.Call{
		Scope:       "charges:customer-7",
		Key:         "order-42",
		Fingerprint: semel.FingerprintOf([]byte("2500 USD to r_123")),
	}
	for range 2 {
		res, err := guard.Do(context.Background(), call, func(context.Context) ([]byte, error) {
			fmt.Println("charging the card")
			return []byte("receipt 1"), nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if !res.Done() { // no error, and not done: in progress, say, or unknown
			fmt.Println(res.Outcome)
			return
		}
		fmt.Printf("%s, replayed: %v\n", res.Reply.Body, res.Outcome == semel.OutcomeReplayed)
	}
	// Output:
	// charging the card
	// receipt 1, replayed: false
	// receipt 1, replayed: true
}

// The operation id is the same on every attempt, so it can be the key that a
// bank dedupes by. Resume says how long the bank remembers it.
func ExampleOperationFrom() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{Service: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := semel.Call{Scope: "charges", Key: "order-42", Fingerprint: semel.FingerprintOf([]byte("2500"))}
	for _, bank := range []error{fmt.Errorf("connection reset"), nil} {
		_, err := guard.Do(context.Background(), call, func(ctx context.Context) ([]byte, error) {
			op, _ := semel.OperationFrom(ctx)
			fmt.Println("attempt", op.Attempt, "as", op.ID)
			return nil, bank
		})
		fmt.Println("error:", err)
	}
	// Output:
	// attempt 1 as 27d8fded-97f7-894a-ab9a-3256d4fff956
	// error: connection reset
	// attempt 2 as 27d8fded-97f7-894a-ab9a-3256d4fff956
	// error: <nil>
}
