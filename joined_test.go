package semel_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// joinStore gives a fault store a business transaction of one row.
type joinStore struct {
	*faultStore

	rows      int
	commitErr error
	undoErr   error
	// commits says whether a commit that answers commitErr has taken effect.
	commits bool
}

var _ semel.Joiner = (*joinStore)(nil)

func (s *joinStore) Join(c semel.Claim) semel.Joint { return &joint{store: s, claim: c} }

type joint struct {
	store  *joinStore
	claim  semel.Claim
	opened atomic.Bool
	ended  bool
}

type jointKey struct{}

func (j *joint) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, j)
}
func (j *joint) Opened() bool { return j.opened.Load() }

func (j *joint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	j.ended = true
	if j.store.commitErr != nil && !j.store.commits {
		return semel.Held{}, j.store.commitErr
	}
	held, err := j.store.Store.Finish(ctx, j.claim, p)
	if err == nil && held.Status == semel.HeldYes {
		j.store.rows++
	}
	return held, errors.Join(err, j.store.commitErr)
}

func (j *joint) Rollback() error {
	j.ended = true
	return j.store.undoErr
}

// joining is a fixture whose guard has a store that can be joined, and a call
// that does.
func joining(t *testing.T, recovery semel.Recovery) (*fixture, *joinStore, semel.Call) {
	t.Helper()
	f := newFixture(t, recovery, semel.Config{})
	store := &joinStore{faultStore: f.store}
	g, err := semel.New(store, recovery, semel.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	f.Guard = g
	c := call("a")
	c.Mode = semel.Joined
	return f, store, c
}

// writesRow is work that writes its row and then ends as c.
func writesRow(c semel.Completion) func(context.Context) semel.Completion {
	return func(ctx context.Context) semel.Completion {
		ctx.Value(jointKey{}).(*joint).opened.Store(true)
		return c
	}
}

func TestJoinedMode(t *testing.T) {
	t.Parallel()
	var (
		keep       = semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("paid")}}
		keepUndone = semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("declined")}, Undo: true}
		unknown    = semel.Completion{}
		notApplied = semel.Completion{Verdict: semel.VerdictNotApplied}
		noAnswer   = errors.New("connection reset during COMMIT")
	)
	for name, tt := range map[string]struct {
		work      semel.Completion
		allInTx   bool
		commitErr error
		undoErr   error
		commits   bool
		wantErr   error
		want      semel.Outcome
		wantState semel.State
		wantRows  int
	}{
		"keeps reply and row together":               {work: keep, want: semel.OutcomeExecuted, wantState: semel.StateDone, wantRows: 1},
		"keeps a refusal's reply and undoes its row": {work: keepUndone, want: semel.OutcomeExecuted, wantState: semel.StateDone},
		"undoes the row of an unknown end":           {work: unknown, want: semel.OutcomeUnknown, wantState: semel.StateUnknown},
		"knows an unknown end undone when all work is in the transaction": {
			work: unknown, allInTx: true, want: semel.OutcomeReleased, wantState: semel.StateReleased,
		},
		"undoes the row of work that was not applied": {work: notApplied, want: semel.OutcomeReleased, wantState: semel.StateReleased},
		"a rollback that fails leaves it unknown whether the row is there": {
			work: notApplied, allInTx: true, undoErr: noAnswer, want: semel.OutcomeUnknown, wantState: semel.StateUnknown,
		},
		"a refusal whose rollback fails is not kept": {
			work: keepUndone, undoErr: noAnswer, want: semel.OutcomeUnknown, wantState: semel.StateUnknown,
		},
		"a refused commit leaves the calls outside unknown": {
			work: keep, commitErr: semel.ErrCommitRefused, wantErr: semel.ErrCommitRefused, want: semel.OutcomeUnknown, wantState: semel.StateUnknown,
		},
		"a refused commit is known undone when all work is in the transaction": {
			work: keep, allInTx: true, commitErr: semel.ErrCommitRefused, wantErr: semel.ErrCommitRefused, want: semel.OutcomeReleased, wantState: semel.StateReleased,
		},
		"a commit without an answer that took effect is found by its token": {
			work: keep, commitErr: noAnswer, commits: true, want: semel.OutcomeExecuted, wantState: semel.StateDone, wantRows: 1,
		},
		"a commit without an answer that is not there leaves the claim": {
			work: keep, commitErr: noAnswer, wantErr: semel.ErrStoreUnavailable, want: semel.OutcomeUnknown, wantState: semel.StateRunning,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, store, c := joining(t, semel.Resume(semel.Forever))
				store.commitErr, store.commits, store.undoErr = tt.commitErr, tt.commits, tt.undoErr
				c.AllInTx = tt.allInTx
				res, err := f.Run(t.Context(), c, writesRow(tt.work))
				if tt.wantErr == nil {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, tt.wantErr)
					assert.Equal(t, len(res.Reply.Body), 0)
				}
				assert.Equal(t, res.Outcome, tt.want)
				assert.Equal(t, f.record(t).State, tt.wantState)
				assert.Equal(t, store.rows, tt.wantRows)
			})
		})
	}
	t.Run("a lease that cannot be renewed does not cut an open transaction short", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f, store, c := joining(t, semel.Resume(semel.Forever))
			f.store.failBefore(only("Extend", -1))
			res, err := f.Run(t.Context(), c, func(ctx context.Context) semel.Completion {
				done := writesRow(keep)(ctx)
				time.Sleep(2 * semel.DefaultLease)
				assert.NoError(t, ctx.Err())
				return done
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, store.rows, 1)
		})
	})
	t.Run("a panic undoes the row", func(t *testing.T) {
		t.Parallel()
		f, store, c := joining(t, semel.Hold())
		var j *joint
		func() {
			defer func() { assert.Equal(t, recover(), any("boom")) }()
			_, _ = f.Run(t.Context(), c, func(ctx context.Context) semel.Completion {
				j = ctx.Value(jointKey{}).(*joint)
				j.opened.Store(true)
				panic("boom")
			})
		}()
		assert.Equal(t, j.ended, true)
		assert.Equal(t, store.rows, 0)
		assert.Equal(t, f.record(t).State, semel.StateUnknown)
	})
	t.Run("a superseded attempt's row is refused", func(t *testing.T) {
		t.Parallel()
		f, store, c := joining(t, semel.Hold())
		res, err := f.Run(t.Context(), c, func(ctx context.Context) semel.Completion {
			f.takenOver(t)
			return writesRow(keep)(ctx)
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
		assert.Equal(t, store.rows, 0)
	})
}
