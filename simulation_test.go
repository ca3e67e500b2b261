package semel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// simulation is one key, a bank, and clients that keep trying through
// processes which die and lose the store's answers, on virtual time.
type simulation struct {
	rng      *lockedRand
	store    semel.Store
	recovery semel.Recovery
	dedupes  bool // whether the bank honours the operation id

	mu      sync.Mutex
	charges int
	byID    map[semel.OperationID]string
	shown   map[string]int
}

// lockedRand is a seeded source for several goroutines.
type lockedRand struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (r *lockedRand) chance(percent int) bool { return r.n(100) < percent }

func (r *lockedRand) n(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// process is one server: a guard over the shared store, until it dies.
type process struct {
	*semel.Guard

	store *faultStore
}

func (s *simulation) newProcess(t *testing.T) *process {
	t.Helper()
	store := &faultStore{Store: s.store, calls: map[string]int{}}
	fault := func(string) error {
		if s.rng.chance(12) {
			return errDown
		}
		return nil
	}
	store.failBefore(fault)
	store.failAfter(fault)
	g, err := semel.New(store, s.recovery, semel.Config{Lease: time.Second, HandlerDeadline: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	return &process{Guard: g, store: store}
}

// die cuts the process off from the store for good.
func (p *process) die() { p.store.failBefore(func(string) error { return errDown }) }

// charge is the outside effect.
func (s *simulation) charge(id semel.OperationID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if receipt, ok := s.byID[id]; ok && s.dedupes {
		return receipt
	}
	s.charges++
	s.byID[id] = fmt.Sprintf("receipt %d", s.charges)
	return s.byID[id]
}

// work charges the bank, is slow or refuses at random, and takes its process
// down at random before or after the charge.
func (s *simulation) work(p *process) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		if s.rng.chance(10) {
			return nil, semel.NotApplied(errors.New("not today"))
		}
		if s.rng.chance(15) {
			p.die()
		}
		time.Sleep(time.Duration(s.rng.n(3000)) * time.Millisecond)
		if s.rng.chance(70) && ctx.Err() != nil {
			return nil, context.Cause(ctx) // the others are deaf
		}
		op, _ := semel.OperationFrom(ctx)
		receipt := s.charge(op.ID)
		if s.rng.chance(15) {
			p.die()
		}
		if s.rng.chance(10) {
			return nil, errors.New("the reply was lost")
		}
		return []byte(receipt), nil
	}
}

// client tries until it has a reply, or gives up.
func (s *simulation) client(t *testing.T) {
	p := s.newProcess(t)
	for range 12 {
		res, err := p.Do(t.Context(), call("a"), s.work(p))
		if err == nil && (res.Outcome == semel.OutcomeExecuted || res.Outcome == semel.OutcomeReplayed) {
			s.mu.Lock()
			s.shown[string(res.Reply.Body)]++
			s.mu.Unlock()
			return
		}
		time.Sleep(time.Duration(s.rng.n(2000)) * time.Millisecond)
		p = s.newProcess(t)
	}
}

func (s *simulation) run(t *testing.T, seed uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		s.store = store
		s.rng = &lockedRand{rng: rand.New(rand.NewPCG(seed, 1))}
		s.byID, s.shown = map[semel.OperationID]string{}, map[string]int{}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { s.client(t) })
		}
		wg.Wait()
		time.Sleep(time.Minute) // work that was forgotten ends as well
	})
}

// Two charges under one key never happen: not when nobody may run again, and
// not when the bank honours the operation id. Whoever is shown a reply is
// shown the same one.
func TestNoScheduleOfFaultsChargesTwice(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		recovery semel.Recovery
		dedupes  bool
	}{
		"under Hold, at a bank that knows no ids":      {semel.Hold(), false},
		"under Resume, at a bank that honours the ids": {semel.Resume(semel.Forever), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replied := 0
			for seed := range uint64(300) {
				sim := &simulation{recovery: s.recovery, dedupes: s.dedupes}
				sim.run(t, seed)
				if sim.charges > 1 || len(sim.shown) > 1 {
					t.Fatalf("seed %d: %d charges, replies %v", seed, sim.charges, sim.shown)
				}
				replied += len(sim.shown)
			}
			if replied < 100 {
				t.Errorf("got a reply in %d of 300 runs; the simulation shows little", replied)
			}
		})
	}
	t.Run("under Resume, at a bank that knows no ids, the simulation has teeth", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(300) {
			sim := &simulation{recovery: semel.Resume(semel.Forever)}
			if sim.run(t, seed); sim.charges > 1 {
				return
			}
		}
		t.Error("no schedule charged twice: the simulation cannot fail")
	})
}
