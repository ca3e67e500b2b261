package semelclient_test

import (
	"context"
	"net/http"
	"os"
	"strings"
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
		waves := make(map[int]int) // requests in each tenth of a second
		last := 0
		first, inMinute := 0, callers
		for _, r := range s.requests() {
			at := r.at.Sub(begun)
			if at == 0 {
				first++
				continue
			}
			if at < time.Minute {
				inMinute++
			}
			tenth := int(at / (100 * time.Millisecond))
			waves[tenth]++
			last = max(last, tenth)
		}
		assert.Equal(t, first, callers)
		got := len(s.requests())
		assert.True(t, got > callers+callers/10, "there are retries: %d requests of %d callers", got, callers)
		// A minute allows a fifth; the second one, without new requests, the reserve.
		assert.True(t, inMinute <= callers*12/10, "%d requests of %d callers in a minute", inMinute, callers)
		assert.True(t, got <= callers*12/10+retry.Reserve, "%d requests of %d callers", got, callers)
		highest := 0
		for _, n := range waves {
			highest = max(highest, n)
		}
		assert.True(t, highest <= 2*retry.Reserve, "no wave comes back together: %d within a tenth of a second", highest)
		assert.True(t, last > 500, "some are left for when it is back: the last one after %d tenths", last)
		if os.Getenv("SEMEL_LONG") != "" {
			for tenth := range last + 1 {
				if waves[tenth] > 0 {
					t.Logf("%5.1f s %s", float64(tenth)/10, strings.Repeat("#", waves[tenth]))
				}
			}
		}
	})
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
