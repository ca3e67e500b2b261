package storetest

import (
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var recoveryChapters = []chapter{
	{name: "Hold", rules: []rule{
		{name: "a lapsed claim answers Unknown, and nothing is written (R16)", test: holdOfLapsed},
		{name: "an unknown record answers Unknown, for ever", test: holdOfUnknown},
	}},
	{name: "Resume", rules: []rule{
		{name: "a lapsed claim is taken over as the next attempt of the same operation", test: resumeOfLapsed},
		{name: "an unknown record is run again at once", test: resumeOfUnknown},
		{name: "the recovery that counts is the one of the Begin that asks", test: askerDecides},
		{name: "ResumeWithin is counted from the first start, not from the last (R8)", test: resumeWithinFromFirstStart},
		{name: "ResumeWithin counts for an unknown record as for a lapsed one", test: resumeWithinOfUnknown},
		{name: "Forever has no end", test: foreverResumes},
		{name: "a record whose reply had started is not run again, lapsed or unknown", test: replyStartedIsNotResumed},
	}},
	{name: "open", rules: []rule{
		{name: "a takeover leaves the record open: the earlier attempt has no known end (M2)", test: takeoverOpens},
		{name: "a takeover of work that was all in a refused transaction leaves nothing open", test: takeoverAllInTx},
		{name: "a record stays open through later takeovers", test: openStays},
		{name: "released on an open record is stored as unknown, and again as that (M2)", test: releasedOnOpenIsUnknown},
		{name: "done on an open record is done", test: doneOnOpenIsDone},
	}},
}

func holdOfLapsed(s *subject) {
	first := s.claim(params("key"))
	before := s.get("key")
	s.lapse()
	res := s.want(params("key"), semel.BeginUnknown)
	assert.Equal(s, res.Record.Claim(), first.Claim(), "claim")
	s.unchanged(before)
}

func holdOfUnknown(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	before := s.get("key")
	s.advance(100 * retention)
	res := s.want(params("key"), semel.BeginUnknown)
	assert.Equal(s, res.Record.State, semel.StateUnknown, "state")
	s.unchanged(before)
}

func resumeOfLapsed(s *subject) {
	p := resuming("key")
	p.Trace = "first"
	first := s.claim(p)
	s.lapse()
	p = resuming("key")
	p.Trace = "second"
	res := s.want(p, semel.BeginClaimed)
	assert.Equal(s, res.From, semel.StateRunning, "state it was found in")
	rec := s.get("key")
	assert.Equal(s, rec.Claim(), semel.Claim{Scope: scope, Key: "key", Token: p.Token, Attempt: 2}, "claim")
	assert.Equal(s, rec.OperationID, first.OperationID, "operation id")
	assert.Equal(s, rec.Trace, "first", "trace")
	near(s, rec.Now.Sub(rec.FirstStarted), lapse, "age since the first start")
	near(s, rec.Now.Sub(rec.Created), lapse, "age since created")
	near(s, rec.AttemptAge(), 0, "age of the attempt")
	near(s, rec.LeaseLeft(), lease, "lease left")
}

func resumeOfUnknown(s *subject) {
	first := s.claim(resuming("key"))
	s.end(first, toUnknown)
	res := s.want(resuming("key"), semel.BeginClaimed)
	assert.Equal(s, res.From, semel.StateUnknown, "state it was found in")
	rec := s.get("key")
	assert.Equal(s, rec.State, semel.StateRunning, "state")
	assert.Equal(s, rec.Attempt, 2, "attempt")
	assert.Equal(s, rec.OperationID, first.OperationID, "operation id")
	assert.True(s, rec.Finished.IsZero(), "a claimed record has not finished")
}

func askerDecides(s *subject) {
	s.claim(resuming("a"))
	s.claim(params("b"))
	s.lapse()
	s.want(params("a"), semel.BeginUnknown)
	s.claim(resuming("b"))
}

func resumeWithinFromFirstStart(s *subject) {
	s.claim(resuming("key"))
	s.advance(resumeWithin / 2)
	s.claim(resuming("key"))
	s.advance(resumeWithin/2 - slack)
	s.claim(resuming("key"))
	s.advance(2*slack + lease)
	before := s.get("key")
	s.want(resuming("key"), semel.BeginUnknown)
	s.unchanged(before)
}

func resumeWithinOfUnknown(s *subject) {
	s.end(s.claim(resuming("key")), toUnknown)
	s.advance(resumeWithin + slack)
	s.want(resuming("key"), semel.BeginUnknown)
}

func foreverResumes(s *subject) {
	s.claim(params("key"))
	s.advance(10 * 365 * 24 * time.Hour)
	p := params("key")
	p.ResumeWithin = semel.Forever
	s.claim(p)
}

func replyStartedIsNotResumed(s *subject) {
	for _, end := range []string{"lapsed", "unknown"} {
		rec := s.claim(resuming(end))
		wantHeld(s, s.extend(rec, semel.ExtendParams{Lease: lease, ReplyStarted: true}), semel.HeldYes, semel.StateRunning)
		if end == "unknown" {
			s.end(rec, toUnknown)
		}
	}
	s.lapse()
	for _, key := range []string{"lapsed", "unknown"} {
		p := resuming(key)
		p.ResumeWithin = semel.Forever
		s.want(p, semel.BeginUnknown)
		assert.Equal(s, s.get(key).ReplyStarted, true, "reply started")
	}
}

// takeOver makes a record that a second attempt has taken over.
func (s *subject) takeOver(key string) (first, second semel.Record) {
	s.Helper()
	first = s.claim(resuming(key))
	s.lapse()
	return first, s.claim(resuming(key))
}

func takeoverOpens(s *subject) {
	_, second := s.takeOver("key")
	assert.Equal(s, second.Open, true, "open, in the answer")
	assert.Equal(s, s.get("key").Open, true, "open, as read back")
	s.end(s.claim(resuming("u")), toUnknown)
	s.claim(resuming("u"))
	assert.Equal(s, s.get("u").Open, true, "open, after an unknown")
}

func takeoverAllInTx(s *subject) {
	p := resuming("key")
	p.AllInTx = true
	s.claim(p)
	s.lapse()
	second := s.claim(resuming("key"))
	assert.Equal(s, s.get("key").Open, false, "open")
	s.end(second, toReleased)
	// What counts is how the earlier attempt worked, and not the later one.
	s.claim(resuming("other"))
	s.lapse()
	p = resuming("other")
	p.AllInTx = true
	s.claim(p)
	assert.Equal(s, s.get("other").Open, true, "open, after an attempt that worked outside")
}

func openStays(s *subject) {
	s.takeOver("key")
	s.lapse()
	p := resuming("key")
	p.AllInTx = true
	s.claim(p)
	assert.Equal(s, s.get("key").Open, true, "open")
}

func releasedOnOpenIsUnknown(s *subject) {
	_, second := s.takeOver("key")
	for range 2 {
		wantHeld(s, s.finish(second, toReleased), semel.HeldYes, semel.StateUnknown)
		assert.Equal(s, s.get("key").State, semel.StateUnknown, "state")
	}
	s.want(params("key"), semel.BeginUnknown)
}

func doneOnOpenIsDone(s *subject) {
	_, second := s.takeOver("key")
	s.end(second, toDone)
	s.want(params("key"), semel.BeginReplay)
}
