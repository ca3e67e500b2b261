package semelotel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelotel"
)

func Example() {
	ctx := context.Background()
	records, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	observer, err := semelotel.New(otel.GetMeterProvider(), semelotel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := observer.Store(records, "") // or "sqlite"
	guard, err := semel.New(store, semel.Hold(), semel.Config{Observer: observer})
	if err != nil {
		fmt.Println(err)
		return
	}

	call := semel.Call{Scope: "alice", Key: "k1", Fingerprint: semel.FingerprintOf([]byte("order 7")), Route: "/orders/{id}"}
	for range 2 {
		res, err := guard.Do(ctx, call, func(context.Context) ([]byte, error) { return []byte("done"), nil })
		fmt.Println(string(res.Reply.Body), res.Done(), res.Ran, err)
	}
	// Output:
	// done true true <nil>
	// done true false <nil>
}
