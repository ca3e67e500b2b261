package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/storetest"
)

// TestContract holds the store to the contract. It has no transactions and no
// second process; nothing but itself can hold up or count its writes.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New:     func(t *testing.T) semel.Store { return newStore(t, memstore.Config{}) },
		Advance: func(_ *testing.T, _ semel.Store, d time.Duration) { time.Sleep(d) },
		Around:  synctest.Test,
		Lacks:   storetest.Joining | storetest.Processes | storetest.WriteCounting | storetest.Stalling,
	})
}
