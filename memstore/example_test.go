package memstore_test

import (
	"context"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
)

// A small bound pushes the oldest reply out: its key runs again, before its
// retention has ended.
func ExampleNew() {
	store, err := memstore.New(memstore.Config{MaxRecords: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"a", "a", "b", "a"} {
		call := semel.Call{Scope: "notes", Key: key, Fingerprint: semel.FingerprintOf([]byte(key))}
		res, err := guard.Do(context.Background(), call, func(context.Context) ([]byte, error) { return nil, nil })
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(key, res.Outcome)
	}
	// Output:
	// a executed
	// a replayed
	// b executed
	// a executed
}
