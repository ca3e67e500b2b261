package semel_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// errDown is what a store says that cannot be reached.
var errDown = errors.New("connection refused")

// faultStore is a memory store whose calls can be made to fail, before or
// after they took effect.
type faultStore struct {
	semel.Store

	mu     sync.Mutex
	before func(call string) error
	after  func(call string) error
	calls  map[string]int
}

func newFaultStore(t *testing.T) *faultStore {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	return &faultStore{Store: s, calls: map[string]int{}}
}

// failBefore makes f decide which calls never reach the store.
func (s *faultStore) failBefore(f func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// failAfter makes f decide which answers are lost.
func (s *faultStore) failAfter(f func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

func (s *faultStore) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *faultStore) fail(call string, before bool) error {
	s.mu.Lock()
	f := s.after
	if before {
		s.calls[call]++
		f = s.before
	}
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(call)
}

func (s *faultStore) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	if err := s.fail("Begin", true); err != nil {
		return semel.BeginResult{}, err
	}
	res, err := s.Store.Begin(ctx, p)
	return res, errors.Join(err, s.fail("Begin", false))
}

func (s *faultStore) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	if err := s.fail("Extend", true); err != nil {
		return semel.Held{}, err
	}
	res, err := s.Store.Extend(ctx, c, p)
	return res, errors.Join(err, s.fail("Extend", false))
}

func (s *faultStore) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	if err := s.fail("Finish", true); err != nil {
		return semel.Held{}, err
	}
	res, err := s.Store.Finish(ctx, c, p)
	return res, errors.Join(err, s.fail("Finish", false))
}

func (s *faultStore) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	if err := s.fail("Get", true); err != nil {
		return semel.Record{}, err
	}
	return s.Store.Get(ctx, scope, key)
}

// only returns a decider that fails the named call the given number of times.
func only(call string, times int) func(string) error {
	var mu sync.Mutex
	return func(c string) error {
		mu.Lock()
		defer mu.Unlock()
		if c != call || times == 0 {
			return nil
		}
		times--
		return errDown
	}
}

// fixture is a guard over a fault store, with a count of what happened.
type fixture struct {
	*semel.Guard

	store  *faultStore
	counts *semel.Counters
}

func newFixture(t *testing.T, recovery semel.Recovery, cfg semel.Config) *fixture {
	t.Helper()
	f := &fixture{store: newFaultStore(t), counts: &semel.Counters{}}
	cfg.Observer, cfg.Logger = f.counts, slog.New(slog.DiscardHandler)
	g, err := semel.New(f.store, recovery, cfg)
	assert.NoError(t, err)
	f.Guard = g
	return f
}

// call is a request under key k1 whose content is input.
func call(input string) semel.Call {
	return semel.Call{Scope: "payments", Key: "k1", Fingerprint: semel.FingerprintOf([]byte(input))}
}

// begin claims k1 the way another process would that then dies.
func (f *fixture) begin(t *testing.T, input string, lease time.Duration) semel.BeginResult {
	t.Helper()
	c := call(input)
	res, err := f.store.Store.Begin(t.Context(), semel.BeginParams{
		Scope: c.Scope, Key: c.Key, Fingerprint: c.Fingerprint, Token: semel.NewToken(),
		OperationID: semel.NewOperationID(semel.DefaultService, c.Scope, c.Key, 0), Lease: lease, ResumeWithin: semel.Forever,
	})
	assert.NoError(t, err)
	return res
}

// takenOver ends the lease of k1, as if the store's clock had jumped, and lets a
// rival claim it.
func (f *fixture) takenOver(t *testing.T) {
	t.Helper()
	rec := f.record(t)
	_, err := f.store.Store.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: 0})
	assert.NoError(t, err)
	assert.Equal(t, f.begin(t, "a", time.Hour).Outcome, semel.BeginClaimed)
}

func (f *fixture) record(t *testing.T) semel.Record {
	t.Helper()
	rec, err := f.Get(t.Context(), "payments", "k1")
	assert.NoError(t, err)
	return rec
}

// answers is work that returns body at once.
func answers(body string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(body), nil }
}

// mustNotRun is work that fails the test.
func mustNotRun(t *testing.T) func(context.Context) ([]byte, error) {
	t.Helper()
	return func(context.Context) ([]byte, error) {
		t.Error("the work ran")
		return nil, nil
	}
}
