package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestARecordIsKeptUntilTheAttemptsThatItReplacedHaveEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{HandlerDeadline: 48 * time.Hour, Lease: time.Hour})
	assert.Equal(t, f.Rules().Retention, 49*time.Hour)
	f = newFixture(t, semel.Hold(), semel.Config{HandlerDeadline: time.Minute, Lease: time.Second, Retention: 61 * time.Second})
	assert.Equal(t, f.Rules().Retention, 61*time.Second)
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
