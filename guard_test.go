package semel_test

import (
	"context"
	"errors"
	"fmt"
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
		{"retention shorter than an attempt and its lease", semel.Hold(), semel.Config{Retention: 5*time.Minute + 30*time.Second - 1}, "Retention is 5m29.999999999s; HandlerDeadline and Lease together (5m30s) are the least"},
		{"retention negative", semel.Hold(), semel.Config{Retention: -1}, "Retention is -1ns"},
		{"lease too short", semel.Hold(), semel.Config{Lease: time.Millisecond}, "the least is 100ms"},
		{"lease negative", semel.Hold(), semel.Config{Lease: -1}, "Lease is -1ns"},
		{"handler deadline negative", semel.Hold(), semel.Config{HandlerDeadline: -1}, "HandlerDeadline is -1ns"},
		{"service blank", semel.Hold(), semel.Config{Service: " \x00"}, `Service is " \x00"; it must be printable`},
		{"service with a space after it", semel.Hold(), semel.Config{Service: "shop "}, `Service is "shop "`},
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
			if err != nil {
				t.Error(err) // which this goroutine may not end the test for
			}
			outcomes[i] = res.Outcome
		})
	}
	wg.Wait()
	assert.Equal(t, runs.Load(), int64(1))
	for _, o := range outcomes {
		if o != semel.OutcomeExecuted && o != semel.OutcomeReplayed && o != semel.OutcomeInProgress {
			t.Errorf("got outcome %v, want executed, replayed or in progress", o)
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

	c.BeforeReplay = func(semel.Record) error { return semel.NotApplied(revoked) }
	_, err = f.Do(t.Context(), c, mustNotRun(t))
	assert.ErrorIs(t, err, revoked)
	assert.True(t, !semel.IsNotApplied(err), "an operation that is done is called not applied")
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
