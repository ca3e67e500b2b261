package semel_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// witness is an Observer that remembers what it was told.
type witness struct {
	mu     sync.Mutex
	events []semel.Event
}

func (w *witness) Observe(_ context.Context, e semel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// last returns the latest event, and checks its kind.
func (w *witness) last(t *testing.T, kind semel.EventKind) semel.Event {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.events[len(w.events)-1]
	assert.Equal(t, e.Kind, kind, "the kind of the latest event")
	return e
}

func TestAnObserverIsTold(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*semel.Guard, *witness) {
		t.Helper()
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		w := &witness{}
		g, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{Observer: w})
		assert.NoError(t, err)
		return g, w
	}
	routed := call("a")
	routed.Route = "/orders/{id}"
	fails := func(context.Context) ([]byte, error) {
		time.Sleep(2 * time.Second)
		return nil, errors.New("no answer")
	}
	t.Run("the route of every call and attempt", func(t *testing.T) {
		t.Parallel()
		g, w := start(t)
		g.Do(t.Context(), routed, answers("done"))
		g.Do(t.Context(), routed, mustNotRun(t))
		assert.Equal(t, len(w.events), 3)
		for _, e := range w.events {
			assert.Equal(t, e.Route, "/orders/{id}", "%v", e.Kind)
		}
	})
	t.Run("how old a reply is that is shown again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g, w := start(t)
			_, err := g.Do(t.Context(), routed, func(context.Context) ([]byte, error) {
				time.Sleep(3 * time.Second) // which is no part of the age
				return nil, nil
			})
			assert.NoError(t, err)
			time.Sleep(time.Hour)
			g.Do(t.Context(), routed, mustNotRun(t))
			assert.Equal(t, w.last(t, semel.EventReplayed).ReplyAge, time.Hour)
		})
	})
	t.Run("how long an operation took over all its attempts", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g, w := start(t)
			g.Do(t.Context(), routed, fails)
			first := w.last(t, semel.EventUnknown)
			assert.Equal(t, first.Duration, 2*time.Second)
			assert.Equal(t, first.SinceFirst, 2*time.Second)
			time.Sleep(time.Minute)
			_, err := g.Do(t.Context(), routed, func(context.Context) ([]byte, error) {
				time.Sleep(3 * time.Second)
				return nil, nil
			})
			assert.NoError(t, err)
			second := w.last(t, semel.EventDone)
			assert.Equal(t, second.Attempt, int64(2))
			assert.Equal(t, second.Duration, 3*time.Second)
			assert.Equal(t, second.SinceFirst, 65*time.Second)
		})
	})
}

// panicky is an observer with a fault of its own.
type panicky struct{}

func (panicky) Observe(context.Context, semel.Event) { panic("boom") }

func TestAnObserverThatPanicsStrandsNoClaim(t *testing.T) {
	t.Parallel()
	g, err := semel.New(newFaultStore(t), semel.Hold(), semel.Config{Observer: panicky{}, Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	res, err := g.Do(t.Context(), call("a"), answers("paid"))
	assert.NoError(t, err)
	assert.Equal(t, res.Done(), true)
}
