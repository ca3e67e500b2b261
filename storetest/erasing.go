package storetest

import (
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var eraseChapters = []chapter{
	{name: "Erase", rules: slices.Concat(
		needing(Erasing, inEach("it is refused, and changes nothing, on a record", []situation{running, lapsed, unknown}, eraseRefused)),
		needing(Erasing, inEach("there is nothing to do, and nothing changes, on a record", []situation{released, doneNoReply}, eraseNothing)),
		[]rule{
			{name: "of a done record the headers and the body are gone, and all else stays", needs: Erasing, test: eraseReply},
			{name: "a repeat is told that the reply was not kept, and with which status the operation is done", needs: Erasing, test: eraseThenRepeat},
			{name: "a key without a record has nothing to erase, and gets no record", needs: Erasing, test: eraseAbsent},
			{name: "an expired record that is not swept yet is erased as well", needs: Erasing, test: eraseExpired},
			{name: "it does not prolong the retention", needs: Erasing, test: eraseRetention},
			{name: "a record that is claimed anew meanwhile is left to its claim", needs: Erasing, test: eraseAgainstClaim},
			{name: "one line of the audit log is left by each reply that goes, however often it is erased", needs: Erasing | Auditing, test: eraseAudit},
		},
	)},
}

var erasure = semel.Audit{Actor: "ops", Reason: "the customer asked for it"}

func (s *subject) eraser() semel.Eraser {
	s.Helper()
	e, ok := semel.As[semel.Eraser](s.store)
	if !ok {
		s.Fatal("the store is no semel.Eraser")
	}
	return e
}

// erase erases and checks the outcome.
func (s *subject) erase(key string, want semel.EraseOutcome) semel.EraseResult {
	s.Helper()
	res, err := s.eraser().Erase(s.Context(), scope, key, erasure)
	assert.NoError(s, err, "Erase")
	if res.Outcome != want {
		s.Fatalf("got outcome %v with the record %v, want %v", res.Outcome, res.Record.State, want)
	}
	return res
}

func eraseRefused(s *subject, in situation) {
	in.make(s, params("key"))
	before := s.get("key")
	res := s.erase("key", semel.EraseRefused)
	assert.Equal(s, res.Record.State, before.State, "state, in the answer")
	s.unchanged(before)
}

func eraseNothing(s *subject, in situation) {
	in.make(s, params("key"))
	before := s.get("key")
	res := s.erase("key", semel.EraseNothing)
	assert.Equal(s, res.Record.State, before.State, "state, in the answer")
	s.unchanged(before)
}

func eraseReply(s *subject) {
	s.end(s.claim(params("another")), toDone)
	s.end(s.claim(params("key")), toDone)
	want := s.get("key")
	res := s.erase("key", semel.EraseDone)
	want.ReplyKept, want.Reply = false, semel.Reply{Status: want.Reply.Status}
	assert.Equal(s, plain(res.Record), plain(want), "the record, in the answer")
	s.unchanged(want)
	assert.Equal(s, s.get("another").ReplyKept, true, "another record's reply is kept")
}

func eraseThenRepeat(s *subject) {
	s.end(s.claim(params("key")), toDone)
	s.erase("key", semel.EraseDone)
	rec := s.want(params("key"), semel.BeginReplay).Record
	assert.Equal(s, rec.ReplyKept, false, "reply kept")
	assert.Equal(s, normal(rec.Reply), semel.Reply{Status: toDone.Reply.Status}, "reply")
}

func eraseAbsent(s *subject) {
	res := s.erase("key", semel.EraseNothing)
	assert.Equal(s, res.Record.State, semel.StateAbsent, "state, in the answer")
	assert.Equal(s, s.claim(params("key")).Attempt, 1, "attempt")
}

func eraseExpired(s *subject) {
	s.end(s.claim(params("key")), toDone)
	s.advance(retention + slack)
	s.erase("key", semel.EraseDone)
	assert.Equal(s, len(s.get("key").Reply.Body), 0, "length of the body")
}

func eraseRetention(s *subject) {
	s.end(s.claim(params("key")), toDone)
	s.advance(retention - slack)
	s.erase("key", semel.EraseDone)
	s.want(params("key"), semel.BeginReplay)
	s.advance(2 * slack)
	s.claim(params("key"))
}

func eraseAgainstClaim(s *subject) {
	for round := range 2 * rounds {
		key := fmt.Sprint("round ", round)
		s.end(s.claim(params(key)), toDone)
		s.advance(retention + slack)
		p := params(key)
		outcomes := atOnce(s, 4, func(i int) (semel.BeginOutcome, error) {
			if i > 0 {
				_, err := s.eraser().Erase(s.Context(), scope, key, erasure)
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

func eraseAudit(s *subject) {
	s.end(s.claim(params("running after all")), toUnknown)
	s.erase("running after all", semel.EraseRefused)
	assert.Equal(s, len(s.audits("running after all")), 0, "lines of what was refused")
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	s.erase("key", semel.EraseDone)
	s.erase("key", semel.EraseNothing)
	lines := s.audits("key")
	if len(lines) != 1 {
		s.Fatalf("got %d lines, want 1", len(lines))
	}
	got := lines[0]
	assert.Equal(s, got.Audit, erasure, "who and why")
	assert.Equal(s, got.To, semel.StateAbsent, "what became of the reply")
	assert.Equal(s, got.Attempt, rec.Attempt, "attempt")
	near(s, s.get("key").Now.Sub(got.At), 0, "age of the line")
}
