package semelotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelotel"
	"github.com/semel-dev/semel/storetest"
)

func newMemory(t testing.TB) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	return s
}

// A store that is timed is held to the same contract.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) semel.Store {
			t.Helper()
			return newMeters(t, semelotel.Config{}).Store(newMemory(t), "")
		},
		Advance: func(_ *testing.T, _ semel.Store, d time.Duration) { time.Sleep(d) },
		Around:  synctest.Test,
		Lacks:   storetest.Joining | storetest.Processes | storetest.WriteCounting | storetest.Stalling,
	})
}

// slow is a store that takes a second for every call, fails if it is told to,
// and joins a transaction in which nothing happens.
type slow struct {
	semel.Store

	err error
}

func (s *slow) Unwrap() semel.Store { return s.Store }

func (s *slow) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	time.Sleep(time.Second)
	if s.err != nil {
		return semel.BeginResult{}, s.err
	}
	return s.Store.Begin(ctx, p)
}

func (s *slow) Join(c semel.Claim) semel.Joint { return &slowJoint{slow: s, claim: c} }

type slowJoint struct {
	slow   *slow
	claim  semel.Claim
	opened bool
}

type jointKey struct{}

func (j *slowJoint) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, j)
}
func (j *slowJoint) Opened() bool    { return j.opened }
func (j *slowJoint) Rollback() error { return nil }

func (j *slowJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	time.Sleep(3 * time.Second)
	return j.slow.Finish(ctx, j.claim, p)
}

func TestAStoreThatIsTimed(t *testing.T) {
	t.Parallel()
	call := semel.Call{Scope: "orders", Key: "k1", Fingerprint: semel.FingerprintOf([]byte("a")), Mode: semel.Joined}
	joined := func(ctx context.Context) semel.Completion {
		ctx.Value(jointKey{}).(*slowJoint).opened = true
		return semel.Completion{Verdict: semel.VerdictKeep}
	}
	t.Run("shows how long claims and joined commits take", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := newMeters(t, semelotel.Config{})
			g, err := semel.New(m.Store(&slow{Store: newMemory(t)}, "sqlite"), semel.Hold(), semel.Config{})
			assert.NoError(t, err)
			res, err := g.Run(t.Context(), call, joined)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, m.series(t), []string{
				"semel.store.duration{db.system.name=sqlite,semel.store.operation=begin} 1 1s",
				"semel.store.duration{db.system.name=sqlite,semel.store.operation=commit} 1 3s",
				"semel.store.info{db.system.name=sqlite,semel.store.class=best-effort} 1",
			})
		})
	})
	t.Run("shows what failed and how", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := newMeters(t, semelotel.Config{})
			broken := &slow{Store: newMemory(t), err: fmt.Errorf("sqlstore: %w", driverError{})}
			g, err := semel.New(m.Store(broken, "sqlite"), semel.Hold(), semel.Config{})
			assert.NoError(t, err)
			_, err = g.Run(t.Context(), call, joined)
			assert.True(t, errors.As(err, new(driverError)), "got %v, want the store's own error", err)
			assert.Equal(t, m.of(t, "semel.store.duration"), []string{
				"semel.store.duration{db.system.name=sqlite,error.type=semelotel_test.driverError,semel.store.operation=begin} 3 3s",
			})
		})
	})
	t.Run("times every method by its name", func(t *testing.T) {
		t.Parallel()
		m := newMeters(t, semelotel.Config{})
		s := m.Store(newMemory(t), "")
		begun, err := s.Begin(t.Context(), semel.BeginParams{Scope: "orders", Key: "k1", Token: semel.NewToken(), Lease: time.Minute})
		assert.NoError(t, err)
		claim := begun.Record.Claim()
		s.Extend(t.Context(), claim, semel.ExtendParams{Lease: time.Minute})
		s.Finish(t.Context(), claim, semel.FinishParams{To: semel.StateDone, Retention: time.Minute})
		s.Get(t.Context(), "orders", "k1")
		s.Sweep(t.Context(), 1)
		lines := strings.Join(m.of(t, "semel.store.duration"), "\n")
		for _, operation := range []string{"begin", "extend", "finish", "get", "sweep"} {
			assert.Contains(t, lines, "semel.store.duration{semel.store.operation="+operation+"} 1 ")
		}
	})
	t.Run("keeps the abilities of the one inside, and gets none that it has not", func(t *testing.T) {
		t.Parallel()
		m := newMeters(t, semelotel.Config{})
		memory := m.Store(newMemory(t), "")
		_, joins := semel.As[semel.Joiner](memory)
		assert.True(t, !joins, "a store in memory is no Joiner")
		_, audits := semel.As[semel.Auditor](memory)
		assert.True(t, audits, "it is an Auditor")
		_, joins = semel.As[semel.Joiner](m.Store(&slow{Store: newMemory(t)}, ""))
		assert.True(t, joins, "one that joins is a Joiner")
	})
	t.Run("is none where there is none, for the guard to refuse", func(t *testing.T) {
		t.Parallel()
		_, err := semel.New(newMeters(t, semelotel.Config{}).Store(nil, ""), semel.Hold(), semel.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
	})
}
