package retry_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient/retry"
)

// allowed asks for n retries and returns how many are allowed.
func allowed(b *retry.Budget, n int) int {
	yes := 0
	for range n {
		if b.Retry() {
			yes++
		}
	}
	return yes
}

func TestABudgetAllowsAFifthOfTheRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b retry.Budget
		for range 1000 {
			b.Request()
		}
		total := allowed(&b, 5000)
		assert.Equal(t, total, retry.Reserve, "a crowd does not use it up at once")
		for range 59 {
			time.Sleep(time.Second)
			got := allowed(&b, 5000)
			assert.True(t, got <= 4, "it is spread: %d in a second", got)
			total += got
		}
		assert.True(t, total >= 195 && total <= 200, "a fifth: %d", total)
	})
}

func TestACallerAloneMayRetryToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b retry.Budget
		b.Request()
		assert.Equal(t, allowed(&b, 100), retry.Reserve)
		time.Sleep(59 * time.Second)
		assert.Equal(t, allowed(&b, 100), 0, "within the minute")
		time.Sleep(2 * time.Second)
		assert.Equal(t, allowed(&b, 100), retry.Reserve, "in the next")
	})
}

func TestARetryThatIsAnsweredCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b retry.Budget
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			assert.True(t, b.Retry())
			b.Answered()
		}
		assert.Equal(t, allowed(&b, 100), retry.Reserve)
		b.Answered()
		b.Answered()
		assert.Equal(t, allowed(&b, 100), 2)
		time.Sleep(2 * time.Second)
		b.Answered()
		assert.Equal(t, allowed(&b, 100), 1, "also one of a while ago")
	})
}

func TestNoMinuteHasMoreRetriesThanItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var b retry.Budget
		var requests, retries []time.Time
		for range 20_000 {
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			if random.IntN(3) == 0 && random.IntN(100) < 60 {
				b.Request()
				requests = append(requests, time.Now())
			}
			if b.Retry() {
				retries = append(retries, time.Now())
			}
		}
		first := 0
		for last, end := range retries {
			for end.Sub(retries[first]) >= time.Minute {
				first++
			}
			from := 0
			for _, at := range requests {
				if d := end.Sub(at); d >= 0 && d < time.Minute+time.Second {
					from++
				}
			}
			got, most := last-first+1, max(retry.Reserve, int(retry.Ratio*float64(from)))
			if got > most {
				t.Fatalf("got %d retries in the minute before %v, want at most %d of %d requests", got, end, most, from)
			}
		}
	})
}
