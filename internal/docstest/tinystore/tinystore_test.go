package tinystore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/docstest/tinystore"
	"github.com/semel-dev/semel/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) semel.Store { return tinystore.New() },
		// The store reads time.Now, so each test runs in a bubble with its own
		// clock, and sleeping moves that.
		Around:  synctest.Test,
		Advance: func(_ *testing.T, _ semel.Store, d time.Duration) { time.Sleep(d) },
		Lacks: storetest.Auditing | storetest.Listing | storetest.Erasing | storetest.Scheduling | storetest.Joining |
			storetest.Processes | storetest.WriteCounting | storetest.Stalling,
	})
}
