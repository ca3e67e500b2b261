package retry_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient/retry"
)

func checked(t *testing.T, p retry.Policy) retry.Policy {
	t.Helper()
	p, err := p.Checked()
	assert.NoError(t, err)
	return p
}

func TestTheFirstRetryComesWithinFiftyMilliseconds(t *testing.T) {
	t.Parallel()
	p := checked(t, retry.Policy{})
	assert.Equal(t, p.Bound(1, false), 50*time.Millisecond)
	assert.Equal(t, p.Bound(2, false), 100*time.Millisecond)
	assert.Equal(t, p.Bound(1, true), time.Second, "after an answer that asks for less")
}

func TestTheCapIsAppliedBeforeTheJitter(t *testing.T) {
	t.Parallel()
	p := checked(t, retry.Policy{})
	assert.Equal(t, p.Bound(1000, false), 20*time.Second, "no bound overflows")
	seen := make(map[time.Duration]bool)
	low, high := 0, 0
	for range 1000 {
		wait := p.Wait(1000, false)
		assert.True(t, wait >= 0 && wait <= 20*time.Second, "within the bound: %v", wait)
		seen[wait] = true
		if wait < 10*time.Second {
			low++
		} else {
			high++
		}
	}
	assert.True(t, len(seen) > 900, "late waits differ: %d of 1000", len(seen))
	assert.True(t, low > 300 && high > 300, "the whole range is used: %d and %d", low, high)
}

func TestABadPolicyNamesItsField(t *testing.T) {
	t.Parallel()
	for field, p := range map[string]retry.Policy{
		"First":          {First: -1},
		"FirstThrottled": {FirstThrottled: -1},
		"Most":           {Most: time.Millisecond},
		"MaxAttempts":    {MaxAttempts: -1},
	} {
		_, err := p.Checked()
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "Policy."+field+" ")
	}
}
