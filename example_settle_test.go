package semel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
)

// A charge went out and no answer came back. Under Hold nothing runs again until
// somebody has asked the bank and says what happened; repeats then get the reply
// that the first client missed.
func ExampleGuard_Settle() {
	ctx := context.Background()
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
	charge := func(context.Context) ([]byte, error) { return nil, errors.New("no answer from the bank") }

	res, err := guard.Do(ctx, call, charge)
	fmt.Println(res.Outcome, "/", err)
	res, err = guard.Do(ctx, call, charge) // does not run
	fmt.Println(res.Outcome, "/", err)

	record, err := guard.Get(ctx, "charges", "order-42")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = guard.Settle(ctx, semel.SettleParams{
		Expect: record,
		As:     semel.SettleDone,
		Reply:  &semel.Reply{Body: []byte("receipt 7")},
		Actor:  "ann@example.com",
		Reason: "the bank has the charge under " + record.OperationID.String(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err = guard.Do(ctx, call, charge)
	fmt.Printf("%v / %v: %s\n", res.Outcome, err, res.Reply.Body)
	// Output:
	// unknown / no answer from the bank
	// unknown / <nil>
	// replayed / <nil>: receipt 7
}
