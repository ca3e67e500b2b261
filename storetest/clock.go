package storetest

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var clockChapters = []chapter{
	{name: "the store's clock", rules: []rule{
		{name: "every answer has the store's time, and none is from before what it tells of", test: nowIsSane},
		{name: "time goes on between two answers as the clock does", test: nowGoesOn},
		{name: "a lease and a retention are as long as asked for, to the millisecond", test: durationsAreExact},
		{name: "a claim that waited has its whole lease: time is taken when it writes, not when it queues", needs: Stalling, test: stalledBegin},
		{name: "a renewal that waited has its whole lease", needs: Stalling, test: stalledExtend},
		{name: "a Finish that waited has its whole retention", needs: Stalling, test: stalledFinish},
	}},
}

// sane checks that nothing r tells of is later than the read.
func sane(s *subject, r semel.Record) {
	s.Helper()
	for what, at := range map[string]time.Time{
		"created": r.Created, "first started": r.FirstStarted, "claimed": r.Claimed, "finished": r.Finished,
	} {
		if at.After(r.Now) {
			s.Errorf("got a record that was %s %v after it was read, want none from the future", what, at.Sub(r.Now))
		}
	}
	assert.True(s, !r.Now.IsZero(), "an answer has the store's time")
}

func nowIsSane(s *subject) {
	for round := range 3 {
		key := string(rune('a' + round))
		results := atOnce(s, racers, func(int) (semel.BeginResult, error) {
			return s.store.Begin(s.Context(), params(key))
		})
		for _, res := range results {
			sane(s, res.Record)
			near(s, res.Record.LeaseLeft(), lease, "lease left")
		}
		s.advance(slack)
		sane(s, s.get(key))
	}
}

func nowGoesOn(s *subject) {
	s.claim(params("key"))
	before := s.get("key")
	s.advance(lease / 2)
	after := s.get("key")
	near(s, after.Now.Sub(before.Now), lease/2, "time between the two answers")
	assert.True(s, s.get("absent").Now.Sub(after.Now) >= 0, "the time of an absent record is no earlier")
}

func durationsAreExact(s *subject) {
	p := params("key")
	p.Lease = 123456 * time.Millisecond
	rec := s.claim(p)
	assert.Equal(s, rec.LeaseEnd.Sub(rec.Claimed), p.Lease, "lease")
	got := s.get("key")
	assert.Equal(s, got.LeaseEnd.Sub(got.Claimed), p.Lease, "lease, as read back")
	end := toDone
	end.Retention = 654321 * time.Millisecond
	s.end(rec, end)
	got = s.get("key")
	assert.Equal(s, got.Expires.Sub(got.Finished), end.Retention, "retention, as read back")
}

// stallCheck is how long a stalled call is watched for being stalled.
const stallCheck = 50 * time.Millisecond

// stalled runs call while writes are stalled, lets wait pass before they go
// on, and returns what call returned.
func stalled[T any](s *subject, wait time.Duration, call func(ctx context.Context) (T, error)) T {
	s.Helper()
	type result struct {
		value T
		err   error
	}
	resume := s.h.Stall(s.T, s.store)
	returned := make(chan result, 1)
	go func() {
		value, err := call(s.Context())
		returned <- result{value, err}
	}()
	select {
	case <-returned:
		resume()
		s.Fatal("a write went through while Harness.Stall held writes up")
	case <-time.After(stallCheck):
	}
	s.advance(wait)
	resume()
	res := <-returned
	assert.NoError(s, res.err, "the stalled call")
	return res.value
}

func stalledBegin(s *subject) {
	res := stalled(s, lease/2, func(ctx context.Context) (semel.BeginResult, error) {
		return s.store.Begin(ctx, params("key"))
	})
	assert.Equal(s, res.Outcome, semel.BeginClaimed, "outcome")
	near(s, res.Record.LeaseLeft(), lease, "lease left, in the answer")
	rec := s.get("key")
	near(s, rec.LeaseLeft(), lease, "lease left")
	near(s, rec.AttemptAge(), 0, "age of the attempt")
}

func stalledExtend(s *subject) {
	rec := s.claim(params("key"))
	held := stalled(s, lease/2, func(ctx context.Context) (semel.Held, error) {
		return s.store.Extend(ctx, rec.Claim(), renew)
	})
	wantHeld(s, held, semel.HeldYes, semel.StateRunning)
	got := s.get("key")
	near(s, got.LeaseLeft(), lease, "lease left")
}

func stalledFinish(s *subject) {
	rec := s.claim(params("key"))
	held := stalled(s, lease/2, func(ctx context.Context) (semel.Held, error) {
		return s.store.Finish(ctx, rec.Claim(), toDone)
	})
	wantHeld(s, held, semel.HeldYes, semel.StateDone)
	got := s.get("key")
	near(s, got.Expires.Sub(got.Now), retention, "time until it expires")
}
