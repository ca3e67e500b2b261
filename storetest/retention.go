package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var expiring = []situation{released, done, doneNoReply}

var retentionChapters = []chapter{
	{name: "retention", rules: slices.Concat(
		inEach("until it has ended, a sweep leaves alone a record", expiring, keptUntilExpiry),
		inEach("once it has ended, Get reads as it is, until it is swept, a record", expiring, expiredIsRead),
		inEach("once it has ended, swept or not, a new life begins of a record", expiring, expiredIsAbsent),
		[]rule{
			{name: "a new life has nothing of the old one", test: newLifeIsNew},
			{name: "running and unknown records never expire", test: unfinishedNeverExpire},
			{name: "a reply is replayed as long as it is kept, counted from completion", test: retentionFromCompletion},
		},
	)},
	{name: "crash point 12: Sweep", rules: slices.Concat(
		inEach("an expired record is removed", expiring, sweepRemoves),
		[]rule{
			{name: "running, lapsed, unknown and reply-started records stay, whatever their age (R25)", test: sweepLeavesUnfinished},
			{name: "at most limit records go at a time, and in the end all", test: sweepHonoursLimit},
			{name: "several sweepers at once remove each record once", test: sweepersAtOnce},
			{name: "a record that is claimed anew while a sweep runs is not removed by it", test: sweepAgainstClaim},
			{name: "a swept claim can neither extend nor end anything", test: sweptClaim},
		},
	)},
}

func keptUntilExpiry(s *subject, in situation) {
	in.make(s, params("key"))
	s.advance(retention - slack)
	before := s.get("key")
	assert.Equal(s, s.sweep(100), 0, "swept")
	s.unchanged(before)
}

// expiredIsRead: that a key is as good as new is for Begin to say. Whoever looks
// at the record, or erases its reply, still finds it.
func expiredIsRead(s *subject, in situation) {
	in.make(s, params("key"))
	before := s.get("key")
	s.advance(retention + slack)
	s.unchanged(before)
	assert.Equal(s, s.sweep(100), 1, "swept")
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state after the sweep")
}

func expiredIsAbsent(s *subject, in situation) {
	for _, swept := range []bool{false, true} {
		key := fmt.Sprintf("swept %v", swept)
		first := in.make(s, params(key))
		s.advance(retention + slack)
		if swept {
			s.sweep(100)
			assert.Equal(s, s.get(key).State, semel.StateAbsent, "state after the sweep")
		}
		res := s.want(params(key), semel.BeginClaimed)
		assert.Equal(s, res.From, semel.StateAbsent, "state it was found in, %s", key)
		assert.Equal(s, res.Record.Attempt, 1, "attempt, %s", key)
		assert.Equal(s, res.Record.OperationID, first.OperationID, "operation id, %s", key)
	}
}

func newLifeIsNew(s *subject) {
	_, second := s.takeOver("key")
	s.extend(second, semel.ExtendParams{Lease: lease, ReplyStarted: true})
	s.end(second, toDone)
	s.advance(retention + slack)
	p := params("key")
	p.Trace = "new"
	s.claim(p)
	rec := s.get("key")
	assert.Equal(s, rec.Attempt, 1, "attempt")
	assert.Equal(s, rec.Open, false, "open")
	assert.Equal(s, rec.ReplyStarted, false, "reply started")
	assert.Equal(s, rec.ReplyKept, false, "reply kept")
	assert.Equal(s, normal(rec.Reply), semel.Reply{}, "reply")
	assert.Equal(s, rec.Trace, "new", "trace")
	assert.True(s, rec.Finished.IsZero() && rec.Expires.IsZero(), "a new life has neither finished nor an expiry")
	near(s, rec.Now.Sub(rec.FirstStarted), 0, "age since the first start")
}

func unfinishedNeverExpire(s *subject) {
	s.claim(params("running"))
	s.end(s.claim(params("unknown")), toUnknown)
	s.advance(20 * 365 * 24 * time.Hour)
	s.want(params("running"), semel.BeginUnknown)
	s.want(params("unknown"), semel.BeginUnknown)
}

func retentionFromCompletion(s *subject) {
	rec := s.claim(params("key"))
	s.advance(retention)
	s.end(rec, toDone)
	s.advance(retention - slack)
	s.want(params("key"), semel.BeginReplay)
	s.advance(2 * slack)
	s.claim(params("key"))
}

func sweepRemoves(s *subject, in situation) {
	in.make(s, params("key"))
	s.advance(retention + slack)
	assert.Equal(s, s.sweep(100), 1, "swept")
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state")
	assert.Equal(s, s.sweep(100), 0, "swept again")
}

func sweepLeavesUnfinished(s *subject) {
	s.claim(params("lapsed"))
	s.extend(s.claim(params("reply started")), semel.ExtendParams{Lease: lease, ReplyStarted: true})
	s.end(s.claim(params("unknown")), toUnknown)
	s.advance(10 * retention)
	s.claim(params("running"))
	keys := []string{"lapsed", "reply started", "unknown", "running"}
	var before []semel.Record
	for _, key := range keys {
		before = append(before, s.get(key))
	}
	assert.Equal(s, s.sweep(100), 0, "swept")
	for _, rec := range before {
		s.unchanged(rec)
	}
}

func sweepHonoursLimit(s *subject) {
	for i := range 7 {
		to := toDone
		if i%2 == 0 {
			to = toReleased
		}
		s.end(s.claim(params(fmt.Sprint(i))), to)
	}
	s.advance(retention + slack)
	for _, want := range []int{3, 3, 1, 0} {
		assert.Equal(s, s.sweep(3), want, "swept")
	}
}

func sweepersAtOnce(s *subject) {
	const records = 40
	for i := range records {
		s.end(s.claim(params(fmt.Sprint(i))), toDone)
	}
	s.advance(retention + slack)
	s.claim(params("running"))
	total := 0
	for _, n := range atOnce(s, 8, func(int) (int, error) { return s.store.Sweep(s.Context(), records) }) {
		total += n
	}
	assert.Equal(s, total, records, "swept by all")
	assert.Equal(s, s.get("running").State, semel.StateRunning, "state of the running one")
}

func sweepAgainstClaim(s *subject) {
	for round := range 2 * rounds {
		key := fmt.Sprint("round ", round)
		s.end(s.claim(params(key)), toDone)
		s.advance(retention + slack)
		p := params(key)
		outcomes := atOnce(s, 4, func(i int) (semel.BeginOutcome, error) {
			if i > 0 {
				_, err := s.store.Sweep(s.Context(), 100)
				return 0, err
			}
			res, err := s.store.Begin(s.Context(), p)
			return res.Outcome, err
		})
		assert.Equal(s, outcomes[0], semel.BeginClaimed, "outcome")
		rec := s.get(key)
		if rec.State != semel.StateRunning || rec.Token != p.Token {
			s.Fatalf("round %d: got the record %v, want it running for who claimed it", round, rec.State)
		}
	}
}

func sweptClaim(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	s.advance(retention + slack)
	assert.Equal(s, s.sweep(100), 1, "swept")
	wantHeld(s, s.extend(rec, renew), semel.HeldSuperseded, semel.StateAbsent)
	wantHeld(s, s.finish(rec, toDone), semel.HeldSuperseded, semel.StateAbsent)
}
