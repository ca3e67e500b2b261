package storetest

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var scheduleChapters = []chapter{
	{name: "SweepTurn", rules: []rule{
		{name: "of sixty-four at once one takes the turn", needs: Scheduling, test: turnRace},
		{name: "nobody takes another until it is over, on the store's clock", needs: Scheduling, test: turnLasts},
		{name: "each says how long ago the last one must be", needs: Scheduling, test: turnOfEach},
	}},
	{name: "SweepLag", rules: []rule{
		{name: "it is zero where nothing is expired", needs: Scheduling, test: lagOfNothing},
		{name: "it is the age of the first to expire of those that are there, whatever its kind", needs: Scheduling, test: lagOfOldest},
		{name: "running and unknown records and tombstones lag behind nothing", needs: Scheduling, test: lagOfUnfinished},
	}},
}

func (s *subject) scheduler() semel.SweepScheduler {
	s.Helper()
	of, ok := semel.As[semel.SweepScheduler](s.store)
	if !ok {
		s.Fatal("the store is no semel.SweepScheduler")
	}
	return of
}

func (s *subject) wantTurn(d time.Duration, want bool) {
	s.Helper()
	got, err := s.scheduler().SweepTurn(s.Context(), d)
	assert.NoError(s, err, "SweepTurn")
	assert.Equal(s, got, want, "turn after %v", d)
}

func (s *subject) lag() time.Duration {
	s.Helper()
	lag, err := s.scheduler().SweepLag(s.Context())
	assert.NoError(s, err, "SweepLag")
	return lag
}

func turnRace(s *subject) {
	for range 3 {
		mine := 0
		for _, taken := range atOnce(s, racers, func(int) (bool, error) { return s.scheduler().SweepTurn(s.Context(), lease) }) {
			if taken {
				mine++
			}
		}
		assert.Equal(s, mine, 1, "turns taken")
		s.lapse()
	}
}

func turnLasts(s *subject) {
	s.wantTurn(lease, true)
	s.wantTurn(lease, false)
	s.advance(lease - slack)
	s.wantTurn(lease, false)
	s.advance(2 * slack)
	s.wantTurn(lease, true)
	s.wantTurn(lease, false)
}

func turnOfEach(s *subject) {
	s.wantTurn(lease, true)
	s.advance(2 * slack)
	s.wantTurn(lease, false)
	s.wantTurn(slack, true)
	s.wantTurn(slack, false)
}

func lagOfNothing(s *subject) {
	assert.Equal(s, s.lag(), 0, "lag of an empty store")
	s.end(s.claim(params("key")), toDone)
	s.advance(retention - slack)
	assert.Equal(s, s.lag(), 0, "lag before the retention has ended")
	s.advance(2 * slack)
	s.sweep(wholeList)
	assert.Equal(s, s.lag(), 0, "lag after the sweep")
}

func lagOfOldest(s *subject) {
	for i, p := range []semel.FinishParams{toDone, toReleased, toDoneNoRep} {
		s.end(s.claim(params(fmt.Sprint("oldest ", i))), p)
		s.advance(2 * slack)
		s.end(s.claim(params(fmt.Sprint("younger ", i))), toDone)
		s.advance(retention)
		near(s, s.lag(), 2*slack, "lag")
		s.advance(2 * slack)
		near(s, s.lag(), 4*slack, "lag, later")
		assert.Equal(s, s.sweep(wholeList), 2, "swept")
	}
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toReleased, semel.NewOperationID(semel.DefaultService, scope, "key", 1)))
	s.advance(retention + 2*slack)
	near(s, s.lag(), 2*slack, "lag of a record that is to leave a tombstone")
}

func lagOfUnfinished(s *subject) {
	s.claim(params("lapsed"))
	s.end(s.claim(params("unknown")), toUnknown)
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toReleased, semel.NewOperationID(semel.DefaultService, scope, "key", 1)))
	s.advance(retention + slack)
	s.sweep(wholeList)
	assert.Equal(s, s.lag(), 0, "lag")
}
