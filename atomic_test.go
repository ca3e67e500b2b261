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
	"github.com/semel-dev/semel/memstore"
)

// atomicStore gives a fault store claims that are made by the commit of a
// business transaction of one row.
type atomicStore struct {
	*faultStore

	rows      int
	open      bool
	commitErr error
	undoErr   error
	// commits says whether a commit that answers commitErr has taken effect.
	commits bool
}

var _ semel.AtomicJoiner = (*atomicStore)(nil)

func (s *atomicStore) BeginAtomic(ctx context.Context, p semel.BeginParams, _ time.Duration) (semel.BeginResult, semel.AtomicJoint, error) {
	if err := s.fail("BeginAtomic", true); err != nil {
		return semel.BeginResult{}, nil, err
	}
	rec, err := s.Store.Get(ctx, p.Scope, p.Key)
	if err != nil {
		return semel.BeginResult{}, nil, err
	}
	res, changed := rec.Begin(p)
	if !changed {
		return res, nil, nil
	}
	if s.open {
		res.Outcome = semel.BeginBusy
		return res, nil, nil
	}
	s.open = true
	return res, &atomicJoint{store: s, begin: p}, nil
}

type atomicJoint struct {
	store *atomicStore
	begin semel.BeginParams
}

func (j *atomicJoint) Context(ctx context.Context) context.Context { return ctx }
func (j *atomicJoint) Opened() bool                                { return true }

func (j *atomicJoint) Rollback() error {
	j.store.open = false
	return j.store.undoErr
}

func (j *atomicJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	held, err := j.CommitReply(ctx, p)
	if held.Status == semel.HeldYes {
		j.store.rows++
	}
	return held, err
}

func (j *atomicJoint) CommitReply(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	j.store.open = false
	if j.store.commitErr != nil && !j.store.commits {
		return semel.Held{}, j.store.commitErr
	}
	begun, err := j.store.Store.Begin(ctx, j.begin)
	if err != nil || begun.Outcome != semel.BeginClaimed {
		return semel.Held{Status: semel.HeldSuperseded, State: begun.Record.State}, err
	}
	held, err := j.store.Store.Finish(ctx, begun.Record.Claim(), p)
	return held, errors.Join(err, j.store.commitErr)
}

func newAtomic(t *testing.T, recovery semel.Recovery) (*fixture, *atomicStore, *semel.Guard) {
	t.Helper()
	f := newFixture(t, recovery, semel.Config{})
	store := &atomicStore{faultStore: f.store}
	g, err := semel.New(store, recovery, semel.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	return f, store, g
}

func atomically(input string) semel.Call {
	c := call(input)
	c.Mode = semel.Atomic
	return c
}

func ends(c semel.Completion) func(context.Context) semel.Completion {
	return func(context.Context) semel.Completion { return c }
}

var paid = semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("paid")}}

func TestAtomicMode(t *testing.T) {
	t.Parallel()
	declined := semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("declined")}, Undo: true}
	noAnswer := errors.New("connection reset during COMMIT")
	for name, tt := range map[string]struct {
		work      semel.Completion
		commitErr error
		undoErr   error
		commits   bool
		wantErr   error
		want      semel.Outcome
		wantState semel.State
		wantRows  int
	}{
		"keeps claim, reply and row together":               {work: paid, want: semel.OutcomeExecuted, wantState: semel.StateDone, wantRows: 1},
		"keeps a refusal's reply and undoes its row":        {work: declined, want: semel.OutcomeExecuted, wantState: semel.StateDone},
		"leaves nothing of an unknown end, which is undone": {work: semel.Completion{}, want: semel.OutcomeReleased},
		"leaves nothing of work that was not applied":       {work: semel.Completion{Verdict: semel.VerdictNotApplied}, want: semel.OutcomeReleased},
		"a refused commit leaves nothing":                   {work: paid, commitErr: semel.ErrCommitRefused, wantErr: semel.ErrCommitRefused, want: semel.OutcomeReleased},
		"a commit without an answer that took effect is found by its token": {
			work: paid, commitErr: noAnswer, commits: true, want: semel.OutcomeExecuted, wantState: semel.StateDone, wantRows: 1,
		},
		"a commit without an answer that is not there is no success": {
			work: paid, commitErr: noAnswer, wantErr: semel.ErrStoreUnavailable, want: semel.OutcomeUnknown,
		},
		"a rollback that fails is not known undone": {undoErr: noAnswer, want: semel.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, store, g := newAtomic(t, semel.Hold())
			store.commitErr, store.commits, store.undoErr = tt.commitErr, tt.commits, tt.undoErr
			res, err := g.Run(t.Context(), atomically("a"), ends(tt.work))
			if tt.wantErr == nil {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, tt.wantErr)
				assert.Equal(t, len(res.Reply.Body), 0)
			}
			assert.Equal(t, res.Outcome, tt.want)
			assert.Equal(t, f.record(t).State, tt.wantState)
			assert.Equal(t, store.rows, tt.wantRows)
			for _, method := range []string{"Begin", "Extend", "Finish"} {
				assert.Equal(t, store.count(method), 0, "calls of", method)
			}
		})
	}
}

func TestAtomicAttempts(t *testing.T) {
	t.Parallel()
	t.Run("have no heartbeat, however long they take", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, store, g := newAtomic(t, semel.Resume(semel.Forever))
			res, err := g.Run(t.Context(), atomically("a"), func(ctx context.Context) semel.Completion {
				time.Sleep(4 * semel.DefaultLease)
				assert.NoError(t, ctx.Err())
				return paid
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, store.count("Extend"), 0, "renewals")
		})
	})
	t.Run("past the deadline leave nothing", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, store, g := newAtomic(t, semel.Hold())
			store.commitErr = semel.ErrCommitRefused // as a store answers whose transaction has ended with its context
			_, err := g.Run(t.Context(), atomically("a"), func(ctx context.Context) semel.Completion {
				<-ctx.Done()
				time.Sleep(time.Second)
				return paid
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			time.Sleep(2 * time.Second)
			assert.Equal(t, f.record(t).State, semel.StateAbsent)
		})
	})
	t.Run("that panic leave nothing, and the next runs", func(t *testing.T) {
		t.Parallel()
		f, store, g := newAtomic(t, semel.Hold())
		func() {
			defer func() { assert.Equal(t, recover(), any("boom")) }()
			_, _ = g.Run(t.Context(), atomically("a"), func(context.Context) semel.Completion { panic("boom") })
		}()
		assert.Equal(t, f.record(t).State, semel.StateAbsent)
		res, err := g.Run(t.Context(), atomically("a"), ends(paid))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, store.rows, 1)
	})
	t.Run("make others wait a second, also for another request", func(t *testing.T) {
		t.Parallel()
		_, _, g := newAtomic(t, semel.Hold())
		_, err := g.Run(t.Context(), atomically("a"), func(context.Context) semel.Completion {
			for _, input := range []string{"a", "b"} {
				res, err := g.Run(t.Context(), atomically(input), ends(paid))
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
				assert.Equal(t, res.RetryAfter, time.Second)
			}
			return paid
		})
		assert.NoError(t, err)
		res, err := g.Run(t.Context(), atomically("b"), ends(paid))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeKeyReused, "outcome for another request once it is done")
	})
	t.Run("begin again where the store did not answer", func(t *testing.T) {
		t.Parallel()
		_, store, g := newAtomic(t, semel.Hold())
		store.failBefore(only("BeginAtomic", 2))
		res, err := g.Run(t.Context(), atomically("a"), ends(paid))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	})
	t.Run("that took over and were undone do not know the end of the earlier one (M2)", func(t *testing.T) {
		t.Parallel()
		f, _, g := newAtomic(t, semel.Resume(semel.Forever))
		first := f.begin(t, "a", 0).Record
		res, err := g.Run(t.Context(), atomically("a"), ends(semel.Completion{Verdict: semel.VerdictNotApplied}))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		left := f.record(t)
		assert.Equal(t, left.Claim(), first.Claim(), "the claim that is left")
	})
	t.Run("that another mode was faster than show what that has saved", func(t *testing.T) {
		t.Parallel()
		_, store, g := newAtomic(t, semel.Hold())
		res, err := g.Run(t.Context(), atomically("a"), func(ctx context.Context) semel.Completion {
			res, err := g.Run(ctx, call("a"), ends(semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("first")}}))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			return paid
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
		assert.Equal(t, string(res.Reply.Body), "first")
		assert.Equal(t, store.rows, 0)
	})
	t.Run("start no reply before their end", func(t *testing.T) {
		t.Parallel()
		_, _, g := newAtomic(t, semel.Hold())
		_, err := g.Run(t.Context(), atomically("a"), func(ctx context.Context) semel.Completion {
			assert.ErrorIs(t, semel.MarkReplyStarted(ctx), semel.ErrConfig)
			return paid
		})
		assert.NoError(t, err)
	})
}

func TestAtomicModeNeedsAStoreThatHasIt(t *testing.T) {
	t.Parallel()
	s, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	g, err := semel.New(s, semel.Hold(), semel.Config{})
	assert.NoError(t, err)
	err = g.CheckMode(semel.Atomic)
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Contains(t, err.Error(), "cannot claim in a business transaction")
	_, err = g.Run(t.Context(), atomically("a"), ends(paid))
	assert.ErrorIs(t, err, semel.ErrConfig)
	c := atomically("a")
	c.AllInTx = true
	_, err = g.Run(t.Context(), c, ends(paid))
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Equal(t, semel.Atomic.String(), "atomic")
}
