package semel_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// callersTx is a transaction that finishes what was bound to it when it
// commits.
type callersTx struct{ atCommit []func() }

func (tx *callersTx) commit() {
	for _, f := range tx.atCommit {
		f()
	}
}

// bindStore finishes in a callersTx.
type bindStore struct {
	*faultStore

	held semel.Held // the answer, in place of that the claim is held
	err  error
}

var _ semel.Binder[*callersTx] = (*bindStore)(nil)

func (s *bindStore) FinishTx(_ context.Context, tx *callersTx, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	if s.err != nil || s.held.Status != 0 {
		return s.held, s.err
	}
	tx.atCommit = append(tx.atCommit, func() { s.Store.Finish(context.Background(), c, p) }) //nolint:errcheck // a memory store does not fail.
	return semel.Held{Status: semel.HeldYes, State: p.To}, nil
}

func newBinding(t *testing.T, recovery semel.Recovery) (*fixture, *bindStore, *semel.Binding[*callersTx]) {
	t.Helper()
	f := newFixture(t, recovery, semel.Config{})
	store := &bindStore{faultStore: f.store}
	g, err := semel.New(store, recovery, semel.Config{})
	assert.NoError(t, err)
	b, err := semel.Bind[*callersTx](g)
	assert.NoError(t, err)
	return f, store, b
}

func pays(context.Context) ([]byte, error) { return []byte("paid"), nil }

func TestJoin(t *testing.T) {
	t.Parallel()
	t.Run("a reply that the store cannot save is returned, and not saved", func(t *testing.T) {
		t.Parallel()
		_, store, _ := newBinding(t, semel.Hold())
		g, err := semel.New(&boundedStore{store, 3}, semel.Hold(), semel.Config{Logger: slog.New(slog.DiscardHandler)})
		assert.NoError(t, err)
		b, err := semel.Bind[*callersTx](g)
		assert.NoError(t, err)
		tx := &callersTx{}
		res, err := b.Join(t.Context(), tx, call("a"), pays)
		assert.NoError(t, err)
		assert.Equal(t, string(res.Reply.Body), "paid")
		tx.commit()
		again, err := b.Join(t.Context(), tx, call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, again.Outcome, semel.OutcomeReplyNotKept)
	})
	t.Run("the reply is saved by the caller's commit, and replayed after it", func(t *testing.T) {
		t.Parallel()
		f, _, b := newBinding(t, semel.Hold())
		tx := &callersTx{}
		res, err := b.Join(t.Context(), tx, call("a"), pays)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, res.Ran, true)
		assert.Equal(t, f.record(t).State, semel.StateRunning, "state before the commit")
		tx.commit()
		assert.Equal(t, f.record(t).State, semel.StateDone, "state after it")
		res, err = b.Join(t.Context(), &callersTx{}, call("a"), nil)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
		assert.Equal(t, res.Ran, false)
		assert.Equal(t, string(res.Reply.Body), "paid")
		assert.NoError(t, b.RolledBack(t.Context(), res))
		assert.Equal(t, f.record(t).State, semel.StateDone, "a transaction that had nothing in it may be rolled back")
	})
	t.Run("a transaction of which nothing is heard leaves a claim that lapses", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, _, b := newBinding(t, semel.Resume(semel.Forever))
			_, err := b.Join(t.Context(), &callersTx{}, call("a"), pays)
			assert.NoError(t, err)
			res, err := b.Join(t.Context(), &callersTx{}, call("a"), pays)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
			time.Sleep(semel.DefaultLease)
			res, err = b.Join(t.Context(), &callersTx{}, call("a"), pays)
			assert.NoError(t, err)
			assert.Equal(t, res.Record.Attempt, 2)
			assert.Equal(t, f.store.count("Extend"), 0, "renewals after the work")
		})
	})
	t.Run("the lease is renewed while the work runs, and its deadline ends its context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, _, b := newBinding(t, semel.Hold())
			res, err := b.Join(t.Context(), &callersTx{}, call("a"), func(ctx context.Context) ([]byte, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			assert.True(t, f.store.count("Extend") > 20, "renewals")
			time.Sleep(time.Hour)
			assert.True(t, f.store.count("Extend") < 50, "and none after it")
		})
	})
	for name, tt := range map[string]struct {
		allInTx bool
		err     error
		want    semel.Outcome
		state   semel.State
	}{
		"work that fails is unknown":                                    {err: errDown, want: semel.OutcomeUnknown, state: semel.StateUnknown},
		"work that was not applied is released":                         {err: semel.NotApplied(errDown), want: semel.OutcomeReleased, state: semel.StateReleased},
		"work that fails with all of it in the transaction is released": {allInTx: true, err: errDown, want: semel.OutcomeReleased, state: semel.StateReleased},
		"a refused commit is unknown":                                   {want: semel.OutcomeExecuted, state: semel.StateUnknown},
		"a refused commit of all the work is released":                  {allInTx: true, want: semel.OutcomeExecuted, state: semel.StateReleased},
	} {
		t.Run(name+", once it is rolled back", func(t *testing.T) {
			t.Parallel()
			f, _, b := newBinding(t, semel.Hold())
			c := call("a")
			c.AllInTx = tt.allInTx
			res, err := b.Join(t.Context(), &callersTx{}, c, func(context.Context) ([]byte, error) { return nil, tt.err })
			assert.True(t, errors.Is(err, tt.err), "the work's own error is returned")
			assert.Equal(t, res.Outcome, tt.want)
			assert.Equal(t, f.record(t).State, semel.StateRunning, "state before")
			assert.NoError(t, b.RolledBack(t.Context(), res))
			assert.Equal(t, f.record(t).State, tt.state, "state after")
		})
	}
	t.Run("a claim that is not held any more is an error: there is something to roll back", func(t *testing.T) {
		t.Parallel()
		for _, status := range []semel.HeldStatus{semel.HeldSuperseded, semel.HeldFinal} {
			f, store, b := newBinding(t, semel.Hold())
			store.held = semel.Held{Status: status, State: semel.StateDone}
			res, err := b.Join(t.Context(), &callersTx{}, call("a"), pays)
			assert.ErrorIs(t, err, semel.ErrSuperseded)
			assert.Equal(t, len(res.Reply.Body), 0)
			assert.NoError(t, b.RolledBack(t.Context(), res))
			assert.Equal(t, f.record(t).State, semel.StateRunning, "the record is not this call's to end")
		}
	})
	t.Run("a transaction that cannot take the reply is an error", func(t *testing.T) {
		t.Parallel()
		_, store, b := newBinding(t, semel.Hold())
		store.err = errDown
		res, err := b.Join(t.Context(), &callersTx{}, call("a"), pays)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.Equal(t, len(res.Reply.Body), 0)
	})
	t.Run("a panic passes through, and the claim is left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, _, b := newBinding(t, semel.Hold())
			func() {
				defer func() { assert.Equal(t, recover(), any("boom")) }()
				_, _ = b.Join(t.Context(), &callersTx{}, call("a"), func(context.Context) ([]byte, error) { panic("boom") })
			}()
			assert.Equal(t, f.record(t).State, semel.StateRunning)
			time.Sleep(time.Hour)
			assert.Equal(t, f.store.count("Extend"), 0, "renewals")
		})
	})
	t.Run("a call without a key or a fingerprint is refused", func(t *testing.T) {
		t.Parallel()
		_, _, b := newBinding(t, semel.Hold())
		_, err := b.Join(t.Context(), &callersTx{}, semel.Call{Scope: "s"}, pays)
		assert.ErrorIs(t, err, semel.ErrKeyInvalid)
	})
}

func TestBindWantsAStoreThatTakesTheTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	_, err := semel.Bind[*callersTx](f.Guard)
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Contains(t, err.Error(), "*semel_test.callersTx")
}
