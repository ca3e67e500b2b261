package storetest

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var atomicChapters = []chapter{
	{name: "atomic mode", rules: []rule{
		{name: "claim, reply and business rows are there together, and not before", needs: atomicMode, test: atomicCommits},
		{name: "done without a reply commits the business rows", needs: atomicMode, test: atomicCommitsNoReply},
		{name: "rolled back, there is nothing at all, and the key is claimed again at once (R17)", needs: atomicMode, test: atomicRollsBack},
		{name: "a reply is kept without the business rows (R13)", needs: atomicMode, test: atomicCommitsReply},
		{name: "while one is open the next is busy at once, whatever its fingerprint (R17)", needs: atomicMode, test: atomicBusy},
		{name: "of sixty-four at once one claims, and the others find it busy", needs: atomicMode, test: atomicRace},
		{name: "a commit whose answer was lost is found by the claim's token", needs: atomicMode, test: atomicAnswerLost},
		{name: "retention runs from the commit, not from the claim", needs: atomicMode, test: atomicRetention},
		{name: "a repeat of a done key is replayed and writes nothing", needs: atomicMode | WriteCounting, test: atomicReplays},
		{name: "another request under a done key is a mismatch", needs: atomicMode, test: atomicMismatch},
		{name: "an expired record begins a new life", needs: atomicMode, test: atomicNewLife},
	}},
	{name: "atomic mode beside the others", rules: []rule{
		{name: "a live claim of another mode is busy", needs: atomicMode, test: atomicFindsRunning},
		{name: "a lapsed claim of another mode is unknown under Hold", needs: atomicMode, test: atomicFindsLapsed},
		{name: "under Resume it is taken over, and fenced off by the commit", needs: atomicMode, test: atomicTakesOver},
		{name: "a takeover that is rolled back leaves the record as it was", needs: atomicMode, test: atomicTakeoverUndone},
		{name: "an owner that finishes before the takeover's commit wins, and the taker's rows are gone", needs: atomicMode, test: atomicLosesToOwner},
		{name: "a Begin is not kept waiting, and the commit is refused after it: its rows are gone (promise 4)", needs: atomicMode, test: atomicLosesToBegin},
		{name: "a released key is claimed, as the next attempt", needs: atomicMode, test: atomicClaimsReleased},
	}},
}

// beginAtomic begins and checks the outcome. The joint is rolled back at the
// end if the test leaves it open.
func (s *subject) beginAtomic(p semel.BeginParams, want semel.BeginOutcome) (semel.BeginResult, semel.AtomicJoint) {
	s.Helper()
	atomic, ok := semel.As[semel.AtomicJoiner](s.store)
	if !ok {
		s.Fatal("the store is no semel.AtomicJoiner")
	}
	ctx, cancel := context.WithTimeout(s.Context(), answerWithin)
	defer cancel()
	res, joint, err := atomic.BeginAtomic(ctx, p, time.Minute)
	assert.NoError(s, err, "BeginAtomic")
	if res.Outcome != want || (joint != nil) != (want == semel.BeginClaimed) {
		s.Fatalf("got outcome %s, a joint: %v; want %s, and a joint where it is claimed", res.Outcome, joint != nil, want)
	}
	if joint != nil {
		s.Cleanup(func() { _ = joint.Rollback() })
	}
	return res, joint
}

// claimAtomic begins a claim and writes one business row in it.
func (s *subject) claimAtomic(p semel.BeginParams) (semel.Record, semel.AtomicJoint) {
	s.Helper()
	res, joint := s.beginAtomic(p, semel.BeginClaimed)
	assert.Equal(s, res.Record.Token, p.Token, "token of the claim")
	assert.Equal(s, joint.Opened(), true, "opened, with the claim")
	assert.NoError(s, s.h.Business.Write(joint.Context(s.Context())), "Business.Write")
	return res.Record, joint
}

func atomicCommits(s *subject) {
	rec, joint := s.claimAtomic(params("key"))
	assert.Equal(s, rec.Attempt, 1, "attempt")
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state that others see before the commit")
	s.wantRows(0)
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	assert.Equal(s, res.Record.OperationID, rec.OperationID, "operation id")
}

func atomicCommitsNoReply(s *subject) {
	_, joint := s.claimAtomic(params("key"))
	wantHeld(s, s.commit(joint, toDoneNoRep), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	res, _ := s.beginAtomic(params("key"), semel.BeginReplay)
	assert.Equal(s, res.Record.ReplyKept, false, "reply kept")
	assert.Equal(s, res.Record.Reply.Status, toDoneNoRep.Reply.Status, "status")
}

func atomicRollsBack(s *subject) {
	first, joint := s.claimAtomic(params("key"))
	for range 2 {
		assert.NoError(s, joint.Rollback(), "Rollback")
	}
	s.wantRows(0)
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state")
	second, _ := s.claimAtomic(params("key"))
	assert.Equal(s, second.Attempt, 1, "attempt, of a key that nothing is known of")
	assert.Equal(s, second.OperationID, first.OperationID, "operation id")
}

func atomicCommitsReply(s *subject) {
	_, joint := s.claimAtomic(params("key"))
	held, err := joint.CommitReply(s.Context(), toDone)
	assert.NoError(s, err, "CommitReply")
	wantHeld(s, held, semel.HeldYes, semel.StateDone)
	s.wantRows(0)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
}

func atomicBusy(s *subject) {
	_, joint := s.claimAtomic(params("key"))
	other := params("key")
	other.Fingerprint = semel.FingerprintOf([]byte("another request"))
	for _, p := range []semel.BeginParams{params("key"), other} {
		s.beginAtomic(p, semel.BeginBusy) // and not after the open one, which nobody ends
	}
	_, beside := s.claimAtomic(params("another key"))
	s.commit(beside, toDone)
	s.commit(joint, toDone)
	s.beginAtomic(params("key"), semel.BeginReplay)
	s.beginAtomic(other, semel.BeginMismatch)
}

func atomicRace(s *subject) {
	joiner, _ := semel.As[semel.AtomicJoiner](s.store)
	for round := range rounds {
		key := string(rune('a' + round))
		joints := atOnce(s, racers, func(int) (semel.AtomicJoint, error) {
			res, joint, err := joiner.BeginAtomic(s.Context(), params(key), time.Minute)
			if err == nil && res.Outcome != semel.BeginClaimed {
				assert.Equal(s, res.Outcome, semel.BeginBusy, "outcome of those who came too late")
			}
			return joint, err
		})
		var won []semel.AtomicJoint
		for _, joint := range joints {
			if joint != nil {
				won = append(won, joint)
			}
		}
		if len(won) != 1 {
			s.Fatalf("got %d claims, want 1", len(won))
		}
		wantHeld(s, s.commit(won[0], toDone), semel.HeldYes, semel.StateDone)
	}
}

func atomicAnswerLost(s *subject) {
	rec, joint := s.claimAtomic(params("key"))
	s.commit(joint, toDone)
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateDone, "state")
	assert.Equal(s, got.Claim(), rec.Claim(), "claim")
}

func atomicRetention(s *subject) {
	rec, joint := s.claimAtomic(params("key"))
	s.advance(lease)
	s.commit(joint, toDone)
	got := s.get("key")
	near(s, got.Expires.Sub(got.Now), retention, "time until it expires")
	near(s, got.Finished.Sub(got.Claimed), lease, "time from the claim to the end")
	near(s, got.Claimed.Sub(rec.Now), 0, "time from the answer to the claim")
}

func atomicReplays(s *subject) {
	_, joint := s.claimAtomic(params("key"))
	s.commit(joint, toDone)
	before := s.h.Writes(s.T, s.store)
	for range 3 {
		res, _ := s.beginAtomic(params("key"), semel.BeginReplay)
		assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	}
	assert.Equal(s, s.h.Writes(s.T, s.store), before, "writes")
}

func atomicMismatch(s *subject) {
	s.end(s.claim(params("key")), toDone)
	other := params("key")
	other.Fingerprint = semel.FingerprintOf([]byte("another request"))
	s.beginAtomic(other, semel.BeginMismatch)
}

func atomicNewLife(s *subject) {
	s.end(s.claim(params("key")), toDone)
	s.advance(retention + slack)
	rec, joint := s.claimAtomic(params("key"))
	assert.Equal(s, rec.Attempt, 1, "attempt")
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	got := s.get("key")
	near(s, got.Now.Sub(got.Created), 0, "age of the record")
	s.wantRows(1)
}

func atomicFindsRunning(s *subject) {
	rec := s.claim(params("key"))
	res, _ := s.beginAtomic(params("key"), semel.BeginBusy)
	assert.Equal(s, res.Record.Claim(), rec.Claim(), "claim that it is told of")
}

func atomicFindsLapsed(s *subject) {
	rec := s.claim(params("key"))
	s.lapse()
	s.beginAtomic(params("key"), semel.BeginUnknown)
	s.end(rec, toDone)
}

func atomicTakesOver(s *subject) {
	first := s.claim(resuming("key"))
	s.lapse()
	second, joint := s.claimAtomic(resuming("key"))
	assert.Equal(s, second.Attempt, 2, "attempt")
	assert.Equal(s, second.OperationID, first.OperationID, "operation id")
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	wantHeld(s, s.finish(first, toReleased), semel.HeldSuperseded, semel.StateDone)
}

func atomicTakeoverUndone(s *subject) {
	first := s.claim(resuming("key"))
	s.lapse()
	before := s.get("key")
	_, joint := s.claimAtomic(resuming("key"))
	assert.NoError(s, joint.Rollback(), "Rollback")
	s.unchanged(before)
	s.end(first, toDone)
}

func atomicLosesToOwner(s *subject) {
	first := s.claim(resuming("key"))
	s.lapse()
	_, joint := s.claimAtomic(resuming("key"))
	s.end(first, toDone)
	before := s.get("key")
	wantHeld(s, s.commit(joint, toDoneWith(semel.Reply{Status: 500})), semel.HeldSuperseded, semel.StateDone)
	s.wantRows(0)
	s.unchanged(before)
}

func atomicLosesToBegin(s *subject) {
	_, joint := s.claimAtomic(params("key"))
	rival := s.claim(params("key"))
	wantHeld(s, s.commit(joint, toDone), semel.HeldSuperseded, semel.StateRunning)
	s.wantRows(0)
	s.end(rival, toDone)
}

func atomicClaimsReleased(s *subject) {
	s.end(s.claim(params("key")), toReleased)
	rec, joint := s.claimAtomic(params("key"))
	assert.Equal(s, rec.Attempt, 2, "attempt")
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}
