package semelclient_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelclient/retry"
)

func TestADeadServiceIsNotKeptDownByItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 1000
		s := playing(status(503))
		client, _ := newClient(t, s)
		begun := time.Now()
		var work sync.WaitGroup
		for range callers {
			in := intend(t, client)
			work.Go(func() {
				r := client.Do(context.Background(), in)
				assert.Equal(t, r.Outcome, semelclient.Unknown)
			})
		}
		work.Wait()
		seconds, early := make([]int, 181), make([]int, 10) // retries in each; of the first second, in each tenth
		first, last, inMinute := 0, 0, callers
		for _, r := range s.requests() {
			at := r.at.Sub(begun)
			if at == 0 {
				first++
				continue
			}
			if at < time.Minute {
				inMinute++
			}
			if at < time.Second {
				early[at/(100*time.Millisecond)]++
			}
			last = int(at / time.Second)
			seconds[last]++
		}
		showRetries(t, seconds[:last+1], early)
		assert.Equal(t, first, callers)
		got := len(s.requests())
		assert.True(t, got > callers+callers/10, "there are retries: %d requests of %d callers", got, callers)
		// A minute allows a fifth; the second one, without new requests, the reserve.
		assert.True(t, inMinute <= callers*12/10, "%d requests of %d callers in a minute", inMinute, callers)
		assert.True(t, got <= callers*12/10+retry.Reserve, "%d requests of %d callers", got, callers)
		assert.True(t, slices.Max(early) <= retry.Reserve, "no more than the reserve comes back at once: %v", early)
		assert.True(t, slices.Max(seconds[1:60]) <= 8, "no wave comes back together: %v", seconds[:60])
		assert.True(t, last > 50, "some are left for when it is back: the last one after %d s", last)
	})
}

// showRetries prints how many retries came in each second, ten to a line.
func showRetries(t *testing.T, seconds, early []int) {
	t.Helper()
	say := func(format string, args ...any) {
		fmt.Fprintln(t.Output(), "report: retries of a thousand callers of a dead service:", fmt.Sprintf(format, args...))
	}
	say("in the tenths of the first second %v", early)
	for from := 0; from < len(seconds); from += 10 {
		if ten := seconds[from:min(from+10, len(seconds))]; slices.Max(ten) > 0 {
			say("in the seconds from %3d %v", from, ten)
		}
	}
}

func TestAServiceThatIsBackIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers = 1000
		var up atomic.Bool
		down, back := status(503), status(201)
		client, _ := newClient(t, playing(func(req *http.Request) (*http.Response, error) {
			if up.Load() {
				return back(req)
			}
			return down(req)
		}))
		time.AfterFunc(3*time.Second+time.Millisecond, func() { up.Store(true) })
		var work sync.WaitGroup
		begun := time.Now()
		for range callers {
			in := intend(t, client)
			work.Go(func() { assert.Equal(t, client.Do(context.Background(), in).Outcome, semelclient.Applied) })
		}
		work.Wait()
		assert.True(t, time.Since(begun) < time.Minute, "all are done after %v", time.Since(begun))
	})
}

func TestARetryAfterDoesNotBringTheCallersBackTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := problem(409, "in-progress", "in-progress", true, "Retry-After", "5")
		s := playing(busy)
		client, _ := newClient(t, s, func(c *semelclient.Config) { c.Deadline = 6 * time.Second })
		var work sync.WaitGroup
		for range 200 {
			in := intend(t, client)
			work.Go(func() { client.Do(context.Background(), in) })
		}
		work.Wait()
		moments := make(map[time.Time]int)
		for _, r := range s.requests() {
			moments[r.at]++
		}
		assert.Equal(t, len(s.requests()), 400)
		assert.True(t, len(moments) > 190, "%d moments", len(moments))
	})
}
