package semel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

func TestNewRefusesBadSettingsByName(t *testing.T) {
	t.Parallel()
	store, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	for _, tt := range []struct {
		name     string
		recovery semel.Recovery
		cfg      semel.Config
		want     string
	}{
		{"no recovery chosen", semel.Recovery{}, semel.Config{}, "Recovery is required"},
		{"resume shorter than the handler deadline", semel.Resume(time.Minute), semel.Config{}, "Resume(1m0s) must be longer than HandlerDeadline (5m0s)"},
		{"resume negative", semel.Resume(-1), semel.Config{}, "must be positive"},
		{"resume zero, which is not hold", semel.Resume(0), semel.Config{}, "must be positive"},
		{"retention below what resume needs", semel.Resume(24 * time.Hour), semel.Config{Retention: 24 * time.Hour}, "at least 47h55m0s"},
		{"retention negative", semel.Hold(), semel.Config{Retention: -1}, "Retention is -1ns"},
		{"lease too short", semel.Hold(), semel.Config{Lease: time.Millisecond}, "the least is 100ms"},
		{"lease negative", semel.Hold(), semel.Config{Lease: -1}, "Lease is -1ns"},
		{"handler deadline negative", semel.Hold(), semel.Config{HandlerDeadline: -1}, "HandlerDeadline is -1ns"},
		{"store timeout negative", semel.Hold(), semel.Config{StoreTimeout: -1}, "StoreTimeout is -1ns"},
		{"handler deadline so long that a sum would overflow", semel.Hold(), semel.Config{HandlerDeadline: semel.Forever}, "HandlerDeadline is 2562047h47m16.854775807s; the most is"},
		{"settle delay so long that a sum would overflow", semel.Hold(), semel.Config{SettleDelay: semel.Forever}, "SettleDelay is"},
		{"retention so long that a sum would overflow", semel.Hold(), semel.Config{Retention: semel.Forever}, "Retention is"},
		{"settle delay negative", semel.Hold(), semel.Config{SettleDelay: -1}, "SettleDelay is -1ns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := semel.New(store, tt.recovery, tt.cfg)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.True(t, strings.Contains(err.Error(), tt.want), fmt.Sprintf("got %q, want it to hold %q", err, tt.want))
		})
	}
	_, err = semel.New(nil, semel.Hold(), semel.Config{})
	assert.ErrorIs(t, err, semel.ErrConfig)
}

func TestRetentionFollowsFromResume(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		recovery semel.Recovery
		want     time.Duration
	}{
		{semel.Hold(), 24 * time.Hour},
		{semel.Resume(semel.Forever), 24 * time.Hour},
		{semel.Resume(time.Hour), 24 * time.Hour},
		{semel.Resume(24 * time.Hour), 47*time.Hour + 55*time.Minute},
	} {
		f := newFixture(t, tt.recovery, semel.Config{})
		assert.Equal(t, f.Rules().Retention, tt.want)
	}
}

func TestACallIsCheckedBeforeTheStoreIsAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	for name, tt := range map[string]struct {
		change func(*semel.Call)
		want   error
	}{
		"empty key":              {func(c *semel.Call) { c.Key = "" }, semel.ErrKeyInvalid},
		"long key":               {func(c *semel.Call) { c.Key = strings.Repeat("k", 256) }, semel.ErrKeyInvalid},
		"empty scope":            {func(c *semel.Call) { c.Scope = "" }, semel.ErrScopeInvalid},
		"long scope":             {func(c *semel.Call) { c.Scope = strings.Repeat("s", 1025) }, semel.ErrScopeInvalid},
		"no fingerprint":         {func(c *semel.Call) { c.Fingerprint = semel.Fingerprint{} }, semel.ErrConfig},
		"no raw digest":          {func(c *semel.Call) { c.Fingerprint.Raw = semel.Digest{} }, semel.ErrConfig},
		"no meaning":             {func(c *semel.Call) { c.Fingerprint.Meaning = semel.Digest{} }, semel.ErrConfig},
		"no policy":              {func(c *semel.Call) { c.Fingerprint.Policy = "" }, semel.ErrConfig},
		"unknown mode":           {func(c *semel.Call) { c.Mode = 7 }, semel.ErrConfig},
		"joined without joiner":  {func(c *semel.Call) { c.Mode = semel.Joined }, semel.ErrConfig},
		"all in tx, but no join": {func(c *semel.Call) { c.AllInTx = true }, semel.ErrConfig},
	} {
		c := call("a")
		tt.change(&c)
		_, err := f.Do(t.Context(), c, mustNotRun(t))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	assert.Equal(t, f.store.count("Begin"), 0)
}

func TestARepeatGetsTheReplyAndRunsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	first, err := f.Do(t.Context(), call("a"), answers("paid"))
	assert.NoError(t, err)
	assert.Equal(t, first.Outcome, semel.OutcomeExecuted)
	assert.Equal(t, first.Ran, true)

	again, err := f.Do(t.Context(), call("a"), mustNotRun(t))
	assert.NoError(t, err)
	assert.Equal(t, again.Outcome, semel.OutcomeReplayed)
	assert.Equal(t, again.Ran, false)
	assert.Equal(t, string(again.Reply.Body), "paid")
	assert.Equal(t, again.Record.OperationID, first.Record.OperationID)
	assert.Equal(t, f.counts.Count(semel.EventReplayed), int64(1))
}

func TestOfSixtyFourAtOnceOneRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	var runs atomic.Int64
	var wg sync.WaitGroup
	outcomes := make([]semel.Outcome, 64)
	for i := range outcomes {
		wg.Go(func() {
			res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				runs.Add(1)
				return []byte("paid"), nil
			})
			assert.NoError(t, err)
			outcomes[i] = res.Outcome
		})
	}
	wg.Wait()
	assert.Equal(t, runs.Load(), int64(1))
	for _, o := range outcomes {
		if o != semel.OutcomeExecuted && o != semel.OutcomeReplayed && o != semel.OutcomeInProgress {
			t.Errorf("got outcome %d", o)
		}
	}
}

func TestAnotherRequestUnderAUsedKey(t *testing.T) {
	t.Parallel()
	t.Run("is refused, also while the first is running", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			res, err := f.Do(ctx, call("b"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeKeyReused)
			return nil, nil
		})
		assert.NoError(t, err)
		res, err := f.Do(t.Context(), call("b"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeKeyReused)
		assert.Equal(t, res.UnknownPolicy, false)
		assert.Equal(t, len(res.Reply.Body), 0)
	})
	t.Run("is compared under the policy its record was saved with", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		saved := call("a").Fingerprint

		newer := call("a")
		newer.Fingerprint = semel.Fingerprint{Raw: semel.Digest{1}, Meaning: semel.Digest{2}, Policy: "newer"}
		res, err := f.Do(t.Context(), newer, mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeKeyReused)
		assert.Equal(t, res.UnknownPolicy, true)

		newer.Refingerprint = func(policy string) (semel.Fingerprint, bool) {
			return semel.Fingerprint{Raw: semel.Digest{1}, Meaning: saved.Meaning, Policy: policy}, policy == semel.BytesPolicy
		}
		res, err = f.Do(t.Context(), newer, mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
	})
	t.Run("under another credential is told apart, and sees nothing", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		mine := call("a")
		mine.Credential = semel.Digest{1}
		_, err := f.Do(t.Context(), mine, answers("secret"))
		assert.NoError(t, err)
		other := call("a")
		other.Credential = semel.Digest{2}
		res, err := f.Do(t.Context(), other, mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeOtherCaller)
		assert.Equal(t, len(res.Reply.Body), 0)
	})
}

func TestRetryAfterIsTheAttemptsAgeWithinItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Hold(), semel.Config{})
		f.begin(t, "a", 30*time.Second)
		for _, tt := range []struct{ at, want time.Duration }{
			{0, time.Second},
			{5 * time.Second, 5 * time.Second},
			{28 * time.Second, 2 * time.Second},
		} {
			time.Sleep(time.Until(f.record(t).Claimed.Add(tt.at)))
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
			assert.Equal(t, res.RetryAfter, tt.want)
		}
	})
}

func TestTheHeartbeatKeepsTheClaimOfLongWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		go func() {
			time.Sleep(100 * time.Second)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
		}()
		res, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			time.Sleep(115 * time.Second)
			return nil, ctx.Err()
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, f.store.count("Extend"), 11) // at 10 s, 20 s … 110 s
	})
}

func TestAnAttemptWithoutAKnownEnd(t *testing.T) {
	t.Parallel()
	t.Run("under Hold is unknown once its lease has lapsed, and stays so", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			f.begin(t, "a", 30*time.Second)
			for range 3 {
				time.Sleep(48 * time.Hour)
				res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
				assert.Equal(t, res.Ran, false)
			}
		})
	})
	t.Run("under Resume runs again with the same operation id", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(24*time.Hour), semel.Config{})
			first := f.begin(t, "a", 30*time.Second)
			time.Sleep(30 * time.Second)
			res, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				op, ok := semel.OperationFrom(ctx)
				assert.Equal(t, ok, true)
				assert.Equal(t, op.ID, first.Record.OperationID)
				assert.Equal(t, op.Attempt, int64(2))
				return nil, nil
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, f.counts.Count(semel.EventTakeover), int64(1))
		})
	})
	t.Run("under Resume is not run again once the downstream may have forgotten", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(24*time.Hour), semel.Config{})
			f.begin(t, "a", 30*time.Second)
			time.Sleep(23*time.Hour + 55*time.Minute + time.Second)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		})
	})
}

func TestAnErrorOfTheWork(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	fails := func(context.Context) ([]byte, error) { return nil, boom }
	t.Run("leaves the outcome unknown, and is returned", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		res, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		assert.Equal(t, f.record(t).State, semel.StateUnknown)
		res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
	})
	t.Run("under Resume is run again at once", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		res, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	})
	t.Run("wrapped by NotApplied releases the key", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return nil, semel.NotApplied(boom) })
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		res, err = f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	})
	t.Run("wrapped by NotApplied speaks for its own attempt only", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return nil, semel.NotApplied(boom) })
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
	})
}

func TestAPanicPassesThroughAndLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
	func() {
		defer func() { assert.Equal(t, recover(), any("boom")) }()
		_, _ = f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { panic("boom") })
	}()
	assert.Equal(t, f.record(t).State, semel.StateUnknown)
	res, err := f.Do(t.Context(), call("a"), answers("paid"))
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
}

func TestWorkThatEndsItsGoroutineIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
		runtime.Goexit()
		return nil, nil
	})
	assert.Equal(t, err != nil, true)
	assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
}

func TestACallerWhoHangsUpDoesNotUndoTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	ctx, hangUp := context.WithCancel(t.Context())
	res, err := f.Do(ctx, call("a"), func(ctx context.Context) ([]byte, error) {
		hangUp()
		return []byte("paid"), ctx.Err()
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
	assert.NoError(t, err)
	assert.Equal(t, string(res.Reply.Body), "paid")
}

func TestAtTheHandlerDeadline(t *testing.T) {
	t.Parallel()
	t.Run("the caller is answered, and the claim is kept until the work returns", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			start := time.Now()
			_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				time.Sleep(7 * time.Minute) // deaf to ctx
				assert.Equal(t, context.Cause(ctx), error(semel.ErrStillRunning))
				return []byte("paid"), nil
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			assert.Equal(t, time.Since(start), 5*time.Minute)

			time.Sleep(time.Minute)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)

			time.Sleep(time.Minute + time.Second)
			res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
			assert.Equal(t, string(res.Reply.Body), "paid")
		})
	})
	t.Run("a panic of forgotten work stops nothing else", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{HandlerDeadline: time.Second})
			_, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				time.Sleep(2 * time.Second)
				panic("boom")
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			time.Sleep(2 * time.Second)
			assert.Equal(t, f.record(t).State, semel.StateUnknown)
		})
	})
}

func TestWhileTheStoreCannotBeReached(t *testing.T) {
	t.Parallel()
	extendFails := func(c string) error {
		if c == "Extend" {
			return errDown
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
	t.Run("work under Hold is not cut short", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			f.store.failBefore(extendFails)
			res, err := f.Do(t.Context(), call("a"), work)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
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

func TestASupersededAttempt(t *testing.T) {
	t.Parallel()
	// takeOver lets a rival take the lapsed claim and end it, while the
	// owner cannot reach the store and does not listen to its context.
	takeOver := func(t *testing.T, f *fixture) semel.Result {
		t.Helper()
		f.store.failBefore(only("Extend", -1))
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
			time.Sleep(31 * time.Second)
			f.store.failBefore(nil)
			rival, err := f.Do(t.Context(), call("a"), answers("the rival's"))
			assert.NoError(t, err)
			assert.Equal(t, rival.Outcome, semel.OutcomeExecuted)
			return []byte("mine"), nil
		})
		assert.NoError(t, err)
		return res
	}
	t.Run("shows the winner's reply and not its own", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			res := takeOver(t, f)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
			assert.Equal(t, string(res.Reply.Body), "the rival's")
			assert.Equal(t, f.counts.Count(semel.EventLeaseLost), int64(1))
		})
	})
	t.Run("is told that the key is free when the later attempt was released", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				// The work is past its deadline and its settle delay, and yet
				// alive: the store's clock has jumped.
				rec := f.record(t)
				_, err := f.store.Store.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: 0})
				assert.NoError(t, err)
				_, err = f.settle(t, semel.SettleNotApplied, func(p *semel.SettleParams) { p.Override = true })
				assert.NoError(t, err)
				return []byte("mine"), nil
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReleased)
			assert.Equal(t, res.Ran, false)
			assert.Equal(t, res.Done(), false)
		})
	})
	t.Run("is cancelled as soon as the store says so", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				rec := f.record(t)
				// The store's clock jumps: the lease ends though nobody slept.
				_, err := f.store.Store.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: 0})
				assert.NoError(t, err)
				assert.Equal(t, f.begin(t, "a", time.Hour).Outcome, semel.BeginClaimed)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			assert.ErrorIs(t, err, semel.ErrSuperseded)
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

func TestBeforeReplayMayRefuse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	_, err := f.Do(t.Context(), call("a"), answers("paid"))
	assert.NoError(t, err)
	c := call("a")
	revoked := errors.New("role revoked")
	c.BeforeReplay = func(semel.Record) error { return revoked }
	res, err := f.Do(t.Context(), c, mustNotRun(t))
	assert.ErrorIs(t, err, semel.ErrReplayRefused)
	assert.ErrorIs(t, err, revoked)
	assert.Equal(t, len(res.Reply.Body), 0)
}

func TestAfterRetentionTheKeyIsNewAndTheOperationIDIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Hold(), semel.Config{})
		first, err := f.Do(t.Context(), call("a"), answers("one"))
		assert.NoError(t, err)
		time.Sleep(24 * time.Hour)
		again, err := f.Do(t.Context(), call("b"), answers("two"))
		assert.NoError(t, err)
		assert.Equal(t, again.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, again.Record.OperationID, first.Record.OperationID)
	})
}

func TestTheSweeperRemovesWhatIsExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Hold(), semel.Config{Retention: time.Hour})
		_, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		sweeper, err := semel.NewSweeper(f.store, semel.SweeperConfig{Batch: 1})
		assert.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- sweeper.Run(ctx) }()
		time.Sleep(30 * time.Minute)
		assert.Equal(t, f.record(t).State, semel.StateDone)
		time.Sleep(32 * time.Minute)
		assert.Equal(t, f.record(t).State, semel.StateAbsent)
		stop()
		assert.ErrorIs(t, <-ended, context.Canceled)
	})
}
