package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestNewSweeperRefuses(t *testing.T) {
	t.Parallel()
	store := newFaultStore(t)
	for name, c := range map[string]struct {
		store semel.Store
		cfg   semel.SweeperConfig
		says  string
	}{
		"no store":                   {nil, semel.SweeperConfig{}, "store is required"},
		"an interval below zero":     {store, semel.SweeperConfig{Interval: -time.Second}, "Interval is -1s; it must be positive"},
		"a batch below zero":         {store, semel.SweeperConfig{Batch: -2}, "Batch is -2; it must be positive"},
		"a store timeout below zero": {store, semel.SweeperConfig{StoreTimeout: -3}, "StoreTimeout is -3ns; it must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := semel.NewSweeper(c.store, c.cfg)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), c.says)
		})
	}
	t.Run("nothing that is left out", func(t *testing.T) {
		t.Parallel()
		_, err := semel.NewSweeper(store, semel.SweeperConfig{})
		assert.NoError(t, err)
	})
}

func TestTheSweeperRemovesWhatIsExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Hold(), semel.Config{Retention: time.Hour})
		_, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		sweeper, err := semel.NewSweeper(f.store, semel.SweeperConfig{Batch: 1})
		assert.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sweeper.Run(ctx) }()
		time.Sleep(30 * time.Minute)
		assert.Equal(t, f.record(t).State, semel.StateDone)
		time.Sleep(32 * time.Minute)
		assert.Equal(t, f.record(t).State, semel.StateAbsent)
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
}
