package semel_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
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

// scheduled is a memory store that counts its sweeps, with a schedule of its
// own.
type scheduled struct {
	*faultStore

	mu     sync.Mutex
	turns  int // that were taken
	last   time.Time
	lags   time.Duration
	sweeps int
	left   int // how many records are expired
	takes  time.Duration
	err    error
}

func (s *scheduled) SweepTurn(_ context.Context, d time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false, s.err
	}
	if !s.last.IsZero() && time.Since(s.last) < d {
		return false, nil
	}
	s.last = time.Now()
	s.turns++
	return true, nil
}

func (s *scheduled) SweepLag(context.Context) (time.Duration, error) { return s.lags, s.err }

func (s *scheduled) Sweep(_ context.Context, limit int) (int, error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeps++
	n := min(limit, s.left)
	s.left -= n
	return n, nil
}

// runFor runs sweepers for d.
func runFor(t *testing.T, d time.Duration, sweepers ...*semel.Sweeper) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var all sync.WaitGroup
	for _, s := range sweepers {
		all.Go(func() { assert.ErrorIs(t, s.Run(ctx), context.DeadlineExceeded) })
	}
	all.Wait()
}

func newSweeper(t *testing.T, store semel.Store, cfg semel.SweeperConfig) *semel.Sweeper {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := semel.NewSweeper(store, cfg)
	assert.NoError(t, err)
	return s
}

func TestOfManySweepersOnOneStoreOneIsAtWorkInEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scheduled{faultStore: newFaultStore(t)}
		w := &witness{}
		var many []*semel.Sweeper
		for range 20 {
			many = append(many, newSweeper(t, store, semel.SweeperConfig{Observer: w}))
		}
		runFor(t, time.Hour, many...)
		assert.Equal(t, store.sweeps, store.turns, "sweeps, one for each turn")
		assert.True(t, store.sweeps >= 50 && store.sweeps <= 68, "about one sweep a minute, got %d in an hour", store.sweeps)
		assert.True(t, len(w.events) >= 20*50, "each says each time how far behind the store is, got %d events", len(w.events))
	})
}

func TestSweepersThatWereStartedTogetherComeApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scheduled{faultStore: newFaultStore(t)}
		moments := map[time.Duration]bool{}
		for range 20 {
			start := time.Now()
			store.last = time.Time{}
			runFor(t, time.Minute, newSweeper(t, store, semel.SweeperConfig{}))
			moments[store.last.Sub(start).Round(time.Second)] = true
		}
		assert.True(t, len(moments) > 5, "the first sweeps are at many moments of an interval, got %d", len(moments))
	})
}

func TestASweepRestsAsLongAsItsBatchesTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scheduled{faultStore: newFaultStore(t), left: 25, takes: time.Second}
		start := time.Now()
		n, err := newSweeper(t, store, semel.SweeperConfig{Batch: 10}).Sweep(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, n, 25, "removed")
		assert.Equal(t, store.sweeps, 3, "batches")
		assert.Equal(t, time.Since(start), 5*time.Second, "three batches and two rests")

		store.left = 25
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		n, err = newSweeper(t, store, semel.SweeperConfig{Batch: 10}).Sweep(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, n, 10, "removed before it was cut off")
	})
}

func TestTheObserverOfASweeperIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store *scheduled
		want  semel.Event
	}{
		"what was removed, and what is left": {
			&scheduled{left: 25, lags: time.Hour, takes: time.Second},
			semel.Event{Kind: semel.EventSweep, Removed: 25, Lag: time.Hour, Stuck: -1, Duration: 5 * time.Second},
		},
		"what is left where it is another's turn": {
			&scheduled{left: 25, lags: time.Hour, last: time.Now().Add(1000 * time.Hour)},
			semel.Event{Kind: semel.EventSweep, Lag: time.Hour, Stuck: -1},
		},
		"that the store is gone": {
			&scheduled{err: errDown},
			semel.Event{Kind: semel.EventSweep, Lag: -1, Stuck: -1, Err: errDown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.store.faultStore = newFaultStore(t)
				w := &witness{}
				runFor(t, 2*time.Minute, newSweeper(t, c.store, semel.SweeperConfig{Batch: 10, Observer: w}))
				assert.Equal(t, w.events[0], c.want)
			})
		})
	}
	t.Run("neither lag nor what is stuck where the store does not say", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &witness{}
			runFor(t, 2*time.Minute, newSweeper(t, newFaultStore(t), semel.SweeperConfig{Observer: w}))
			assert.Equal(t, w.events[0], semel.Event{Kind: semel.EventSweep, Lag: -1, Stuck: -1})
		})
	})
}

func TestASweeperSaysHowLongTheOldestOperationHasBeenStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		claim := func(key string) semel.Claim {
			begun, err := store.Begin(t.Context(), semel.BeginParams{
				Scope: "c_1", Key: key, Token: semel.NewToken(), OperationID: semel.NewOperationID("shop", "c_1", key, 0), Lease: time.Minute,
			})
			assert.NoError(t, err)
			return begun.Record.Claim()
		}
		end := func(c semel.Claim, to semel.State) {
			_, err := store.Finish(t.Context(), c, semel.FinishParams{To: to, Retention: 24 * time.Hour})
			assert.NoError(t, err)
		}
		told := func() (first, last time.Duration) {
			w := &witness{}
			runFor(t, 2*time.Hour, newSweeper(t, store, semel.SweeperConfig{Observer: w}))
			return w.events[0].Stuck, w.events[len(w.events)-1].Stuck
		}
		lapsed, unknown := claim("lapsed"), claim("unknown")
		end(unknown, semel.StateUnknown)
		end(claim("done"), semel.StateDone)

		first, last := told()
		assert.Equal(t, first, 0, "of what is too young to be stuck")
		assert.True(t, last > 118*time.Minute && last <= 2*time.Hour, "after two hours, got %v", last)
		end(lapsed, semel.StateReleased)
		first, _ = told()
		assert.True(t, first >= 2*time.Hour, "while one is still unknown, got %v", first)
		end(unknown, semel.StateReleased)
		first, last = told()
		assert.Equal(t, first+last, 0, "once nothing is")
	})
}

func TestASweeperGoesOnWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scheduled{faultStore: newFaultStore(t), left: 1, err: errDown}
		s := newSweeper(t, store, semel.SweeperConfig{})
		runFor(t, 10*time.Minute, s)
		assert.Equal(t, store.left, 1, "expired while the store is gone")
		store.err = nil
		runFor(t, 2*time.Minute, s)
		assert.Equal(t, store.left, 0, "expired afterwards")
	})
}
