package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// simulated is a server whose clock is ahead of ours.
type simulated struct {
	*clocks

	now   time.Time // here
	ahead int64
}

// step is one that takes so long there and back.
func (s *simulated) step(there, back time.Duration) {
	sent := s.now
	server := s.here(sent.Add(there)) + s.ahead
	s.now = sent.Add(there + back)
	s.learn(0, sent, s.now, server)
}

// late is by how much a step may run after its caller has given up.
func (s *simulated) late() time.Duration {
	return time.Duration(s.there(0, s.now)-s.here(s.now)-s.ahead) * time.Microsecond
}

func TestNoStepRunsAfterItsCallerHasGivenUp(t *testing.T) {
	t.Parallel()
	upTo := func(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d))) }
	s := &simulated{clocks: newClocks(), ahead: -5_000_000_000}
	s.now = s.base
	for _, jump := range []time.Duration{0, time.Hour, 24 * time.Hour, -time.Hour, -24 * time.Hour} {
		s.ahead += jump.Microseconds()
		best := time.Hour
		for i := range 1000 {
			there, back := upTo(100*time.Millisecond), upTo(100*time.Millisecond)
			s.step(there, back)
			best = min(best, back)
			late := s.late()
			if jump < 0 && i == 0 && late > 0 {
				t.Errorf("jump %v: got %v late after the first answer, want none", jump, late)
			}
			if late > time.Microsecond || late < -best-time.Microsecond {
				t.Fatalf("jump %v, step %d: got %v late, want none, and no earlier than the fastest answer took, %v", jump, i, late, best)
			}
			s.now = s.now.Add(upTo(time.Second))
		}
	}
}

func TestBucketsHaveClocksOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := newClocks()
	now := time.Now()
	c.learn(1, now, now, c.here(now)+1000)
	c.learn(2, now, now, c.here(now)-1000)
	assert.Equal(t, c.there(1, now)-c.there(2, now), 2000)
}
