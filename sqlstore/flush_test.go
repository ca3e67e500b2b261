package sqlstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

func TestLooksAreSharedByThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLooks()
		var asked atomic.Int64
		ask := func(context.Context) (position, error) {
			n := asked.Add(1)
			time.Sleep(time.Second)
			return position{logged: n}, nil
		}
		var all sync.WaitGroup
		seen := make([]position, 11)
		for i := range seen {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // all but the first come amid its look
				var err error
				seen[i], err = l.look(t.Context(), ask)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, asked.Load(), 2, "looks")
		assert.Equal(t, seen[0].logged, 1, "what the first has seen")
		for _, at := range seen[1:] {
			assert.Equal(t, at.logged, 2, "what one has seen who came amid the first look")
		}
	})
}

func TestALookThatFailsIsItsOwnersFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLooks()
		slow := func(ctx context.Context) (position, error) {
			select {
			case <-time.After(time.Minute):
				return position{logged: 1}, nil
			case <-ctx.Done():
				return position{}, ctx.Err()
			}
		}
		var all sync.WaitGroup
		for patience, fails := range map[time.Duration]bool{
			10 * time.Second: true, // looks
			20 * time.Second: true, // waits for its turn, and looks then
			30 * time.Second: true, // waits with that one
			time.Hour:        false,
		} {
			all.Go(func() {
				time.Sleep(patience / 10000) // in this order
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := l.look(ctx, slow)
				assert.Equal(t, errors.Is(err, context.DeadlineExceeded), fails, "who waits %v fails", patience)
			})
		}
		all.Wait()
		_, err := l.look(t.Context(), slow)
		assert.NoError(t, err, "when all have gone")
	})
}
