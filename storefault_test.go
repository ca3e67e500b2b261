package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestWhileTheStoreCannotBeReached(t *testing.T) {
	t.Parallel()
	extendFails := func(c string) error {
		if c == "Extend" {
			return errDown
		}
		return nil
	}
	hangs := func(c string) error {
		if c == "Extend" {
			time.Sleep(semel.DefaultStoreTimeout)
			return context.DeadlineExceeded
		}
		return nil
	}
	work := func(ctx context.Context) ([]byte, error) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(2 * time.Minute):
			return []byte("paid"), nil
		}
	}
	t.Run("work under Resume is cancelled when its lease ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			f.store.failBefore(extendFails)
			start := time.Now()
			_, err := f.Do(t.Context(), call("a"), work)
			assert.ErrorIs(t, err, semel.ErrSuperseded)
			assert.Equal(t, time.Since(start), 30*time.Second)
		})
	})
	t.Run("work under Resume is cancelled when its lease ends, also while a beat hangs", func(t *testing.T) {
		t.Parallel()
		for _, lease := range []time.Duration{semel.DefaultLease, 300 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, semel.Resume(semel.Forever), semel.Config{Lease: lease})
				f.store.failBefore(hangs)
				start := time.Now()
				_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
					<-ctx.Done()
					assert.Equal(t, time.Since(start), lease)
					return nil, context.Cause(ctx)
				})
				assert.ErrorIs(t, err, semel.ErrSuperseded)
			})
		}
	})
	t.Run("work that does not listen keeps its claim once the store is back, if nobody took over", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			f.store.failBefore(extendFails)
			res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				time.Sleep(40 * time.Second)
				f.store.failBefore(nil)
				time.Sleep(time.Minute)
				again, err := f.Do(t.Context(), call("a"), mustNotRun(t))
				assert.NoError(t, err)
				assert.Equal(t, again.Outcome, semel.OutcomeInProgress)
				return []byte("paid"), nil
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		})
	})
	t.Run("work under Hold is not cut short", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, fails := range []func(string) error{extendFails, hangs} {
				f := newFixture(t, semel.Hold(), semel.Config{})
				f.store.failBefore(fails)
				res, err := f.Do(t.Context(), call("a"), work)
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			}
		})
	})
	t.Run("nothing runs", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		f.store.failBefore(only("Begin", 3))
		_, err := f.Do(t.Context(), call("a"), mustNotRun(t))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.ErrorIs(t, err, errDown)
	})
	t.Run("a claim whose answer was lost is found again by its token", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		f.store.failAfter(only("Begin", 1))
		res, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, res.Record.Attempt, int64(1))
	})
	t.Run("the end is saved again until it is saved", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, lose := range []func(*fixture){
				func(f *fixture) { f.store.failBefore(only("Finish", 2)) },
				func(f *fixture) { f.store.failAfter(only("Finish", 2)) },
			} {
				f := newFixture(t, semel.Hold(), semel.Config{})
				lose(f)
				res, err := f.Do(t.Context(), call("a"), answers("paid"))
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
				assert.Equal(t, f.record(t).State, semel.StateDone)
			}
		})
	})
	t.Run("an end that cannot be saved is not shown, and the claim is left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			f.store.failBefore(only("Finish", -1))
			res, err := f.Do(t.Context(), call("a"), answers("paid"))
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, len(res.Reply.Body), 0)
			assert.Equal(t, f.record(t).State, semel.StateRunning)
		})
	})
}

// limitedStore gives a statement up after two seconds.
type limitedStore struct{ semel.Store }

func (limitedStore) StatementLimit() time.Duration { return 2 * time.Second }

func TestTheStoreGivesAStatementUpBeforeItsCallerDoes(t *testing.T) {
	t.Parallel()
	_, err := semel.New(limitedStore{newFaultStore(t)}, semel.Hold(), semel.Config{StoreTimeout: 2 * time.Second})
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.Contains(t, err.Error(), "StoreTimeout is 2s; the store's own limit for a statement is 2s")
	_, err = semel.New(limitedStore{newFaultStore(t)}, semel.Hold(), semel.Config{StoreTimeout: 3 * time.Second})
	assert.NoError(t, err)
}

// hangingStore never answers a Begin.
type hangingStore struct{ semel.Store }

func (hangingStore) Begin(ctx context.Context, _ semel.BeginParams) (semel.BeginResult, error) {
	<-ctx.Done()
	return semel.BeginResult{}, ctx.Err()
}

func TestAStoreThatDoesNotAnswerCostsTheStoreTimeoutOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := semel.New(hangingStore{newFaultStore(t)}, semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		start := time.Now()
		_, err = g.Do(t.Context(), call("a"), mustNotRun(t))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.Equal(t, time.Since(start), semel.DefaultStoreTimeout)
	})
}
