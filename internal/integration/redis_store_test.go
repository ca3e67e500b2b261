package integration

import (
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/storetest"
)

func TestRedisMeetsTheContract(t *testing.T) {
	t.Parallel()
	for way, at := range redisWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, storetest.Harness{
				New:     func(t *testing.T) semel.Store { t.Helper(); return newRedis(t, at(t)) },
				Advance: func(t *testing.T, s semel.Store, d time.Duration) { t.Helper(); itsRedis(s).advance(t, d) },
				Writes:  func(t *testing.T, s semel.Store) int64 { t.Helper(); return itsRedis(s).writes(t) },
				Stall:   func(_ *testing.T, s semel.Store) func() { return itsRedis(s).stall() },
				Lacks:   redisLacks,
				Process: func(_ *testing.T, s semel.Store) *exec.Cmd {
					return command("redis-worker", pathVariable+"="+itsRedis(s).url, prefixVariable+"="+itsRedis(s).prefix)
				},
			})
		})
	}
}

// redisLacks is what Redis has no transactions for.
const redisLacks = storetest.Joining

func itsRedis(s semel.Store) *redisStore { return s.(*redisStore) }
