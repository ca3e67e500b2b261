package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestOutsideAnOperation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, ok := semel.OperationFrom(ctx)
	assert.Equal(t, ok, false, "there is an operation")
	semel.DeclareFinal(ctx)
	semel.DeclareNotApplied(ctx)
	semel.Commit(ctx)
	assert.Equal(t, semel.DeclaredBy(ctx), semel.Declared{})
	assert.NoError(t, semel.MarkReplyStarted(ctx))
	assert.Equal(t, semel.SameAttempt(ctx, context.Background()), true)
}

func TestWhatTheWorkDeclares(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		declare func(context.Context)
		want    semel.Declared
	}{
		"nothing":     {func(context.Context) {}, semel.Declared{}},
		"final":       {semel.DeclareFinal, semel.Declared{Final: true}},
		"not applied": {semel.DeclareNotApplied, semel.Declared{NotApplied: true}},
		"commit":      {semel.Commit, semel.Declared{Commit: true}},
	} {
		t.Run(name+" is read from any context below the work's", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, semel.Hold(), semel.Config{})
			_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				below, cancel := context.WithCancel(ctx)
				tt.declare(below)
				cancel()
				assert.Equal(t, semel.DeclaredBy(ctx), tt.want)
				assert.Equal(t, semel.DeclaredBy(below), tt.want)
				return nil, nil
			})
			assert.NoError(t, err)
		})
	}
}

func TestAReplyThatHasStarted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verdict semel.Verdict
		want    semel.Outcome
		repeat  semel.Outcome
	}{
		"is not kept, though the work would have it kept":         {semel.VerdictKeep, semel.OutcomeExecuted, semel.OutcomeReplyNotKept},
		"is no release, though the work says that it had no part": {semel.VerdictNotApplied, semel.OutcomeUnknown, semel.OutcomeUnknown},
		"is not run again under Resume":                           {semel.VerdictUnknown, semel.OutcomeUnknown, semel.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			res, err := f.Run(t.Context(), call("a"), func(ctx context.Context) semel.Completion {
				for range 2 {
					assert.NoError(t, semel.MarkReplyStarted(ctx))
				}
				assert.Equal(t, f.store.count("Extend"), 1, "marks that were saved")
				assert.Equal(t, f.record(t).ReplyStarted, true)
				return semel.Completion{Verdict: tt.verdict, Reply: semel.Reply{Body: []byte("paid")}}
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, tt.want)
			res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, tt.repeat)
		})
	}
	t.Run("is not to be sent while that cannot be saved, and is kept whole", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		f.store.failBefore(only("Extend", 1))
		res, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			assert.ErrorIs(t, semel.MarkReplyStarted(ctx), semel.ErrStoreUnavailable)
			return []byte("paid"), nil
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, f.record(t).ReplyKept, true)
	})
	t.Run("is not to be sent by an attempt that was replaced, which is cancelled", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			f.takenOver(t)
			assert.ErrorIs(t, semel.MarkReplyStarted(ctx), semel.ErrSuperseded)
			assert.ErrorIs(t, context.Cause(ctx), semel.ErrSuperseded)
			return nil, nil
		})
		assert.NoError(t, err)
	})
}

func TestAnAttemptInsideAnother(t *testing.T) {
	t.Parallel()
	f, inside := newFixture(t, semel.Hold(), semel.Config{}), newFixture(t, semel.Hold(), semel.Config{})
	_, err := f.Do(t.Context(), call("a"), func(outer context.Context) ([]byte, error) {
		below, cancel := context.WithCancel(outer)
		defer cancel()
		assert.Equal(t, semel.SameAttempt(outer, below), true, "one attempt and a context below its own")
		res, err := inside.Do(outer, call("b"), func(inner context.Context) ([]byte, error) {
			assert.Equal(t, semel.SameAttempt(outer, inner), false, "an attempt and another inside it")
			semel.DeclareFinal(inner)
			return nil, nil
		})
		assert.Equal(t, semel.DeclaredBy(outer), semel.Declared{}, "what the inner one declared")
		return res.Reply.Body, err
	})
	assert.NoError(t, err)
}

func TestTheContextOfTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Hold(), semel.Config{HandlerDeadline: time.Minute})
		type key struct{}
		caller, hangUp := context.WithTimeout(context.WithValue(t.Context(), key{}, "ann"), time.Second)
		defer hangUp()
		start := time.Now()
		_, err := f.Do(caller, call("a"), func(ctx context.Context) ([]byte, error) {
			deadline, ok := ctx.Deadline()
			assert.True(t, ok, "there is a deadline")
			assert.Equal(t, deadline.Sub(start), time.Minute, "its own deadline")
			assert.Equal(t, ctx.Value(key{}), any("ann"), "the caller's values")
			time.Sleep(2 * time.Second) // the caller has hung up
			assert.NoError(t, ctx.Err())
			assert.NoError(t, context.Cause(ctx))
			<-ctx.Done()
			assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			assert.ErrorIs(t, context.Cause(ctx), semel.ErrStillRunning)
			assert.Equal(t, ctx.Value(key{}), any("ann"), "the caller's values, when it is over")
			time.Sleep(time.Second) // until the caller has been answered
			return nil, nil
		})
		assert.ErrorIs(t, err, semel.ErrStillRunning)
		assert.Equal(t, time.Since(start), time.Minute)
		time.Sleep(2 * time.Second)
		assert.Equal(t, f.record(t).State, semel.StateDone)
	})
}
