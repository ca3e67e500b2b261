package storetest

import (
	"errors"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var joinedChapters = []chapter{
	{name: "joined mode", rules: []rule{
		{name: "a joint opens nothing until the work asks, and may be rolled back all the same", needs: Joining, test: jointOpensLate},
		{name: "reply and business rows are there together", needs: Joining, test: jointCommits},
		{name: "done without a reply commits the business rows", needs: Joining, test: jointCommitsNoReply},
		{name: "an end that is not done is refused, and the transaction stays open", needs: Joining, test: jointOnlyDone},
		{name: "rolled back, there are no rows and the claim runs on", needs: Joining, test: jointRollsBack},
		{name: "a claim whose lease has lapsed commits (R16)", needs: Joining, test: jointCommitsLapsed},
		{name: "a claim that was marked unknown commits by its own attempt (M5)", needs: Joining, test: jointCommitsUnknown},
		{name: "a claim that has ended otherwise is refused as final, and its rows are gone", needs: Joining, test: jointFinal},
		{name: "a commit whose answer was lost is found by the claim's token", needs: Joining, test: jointAnswerLost},
		{name: "a commit outlives a Sweep that runs beside it", needs: Joining, test: jointAgainstSweep},
	}},
	{name: "crash point 7: a joined owner wakes after a takeover", rules: []rule{
		{name: "its commit is refused, and its business rows are gone (promise 4)", needs: Joining, test: jointSuperseded},
		{name: "its commit is refused after the rival's, and only the rival's rows are there", needs: Joining, test: jointSupersededByDone},
		{name: "its commit is refused when the key has begun a new life", needs: Joining, test: jointOfEarlierLife},
	}},
	{name: "crash point 4: takeovers against a joined commit", rules: []rule{
		{name: "either the commit is held and its rows are there, or one takeover claims and they are not", needs: Joining, test: jointAgainstTakeovers},
	}},
}

// join opens the joint of rec and writes one business row through it.
func (s *subject) join(rec semel.Record) semel.Joint {
	s.Helper()
	joint := s.joint(rec)
	assert.NoError(s, s.h.Business.Write(joint.Context(s.Context())), "Business.Write")
	assert.Equal(s, joint.Opened(), true, "opened, after a write")
	return joint
}

// joint is rec's, rolled back at the end if the test leaves it open.
func (s *subject) joint(rec semel.Record) semel.Joint {
	s.Helper()
	joiner, ok := semel.As[semel.Joiner](s.store)
	if !ok {
		s.Fatal("the store is no semel.Joiner")
	}
	joint := joiner.Join(rec.Claim())
	s.Cleanup(func() { _ = joint.Rollback() })
	return joint
}

func (s *subject) commit(joint semel.Joint, p semel.FinishParams) semel.Held {
	s.Helper()
	held, err := joint.Commit(s.Context(), p)
	assert.NoError(s, err, "Commit")
	return held
}

func (s *subject) wantRows(want int) {
	s.Helper()
	assert.Equal(s, s.h.Business.Rows(s.T, s.store), want, "committed business rows")
}

func jointOpensLate(s *subject) {
	rec := s.claim(params("key"))
	joint := s.joint(rec)
	assert.Equal(s, joint.Opened(), false, "opened")
	for range 2 {
		assert.NoError(s, joint.Rollback(), "Rollback")
	}
	s.wantRows(0)
	s.end(rec, toDone)
}

func jointCommits(s *subject) {
	rec := s.claim(params("key"))
	wantHeld(s, s.commit(s.join(rec), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	near(s, res.Record.Expires.Sub(res.Record.Now), retention, "time until it expires")
}

func jointCommitsNoReply(s *subject) {
	wantHeld(s, s.commit(s.join(s.claim(params("key"))), toDoneNoRep), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, res.Record.ReplyKept, false, "reply kept")
}

func jointOnlyDone(s *subject) {
	rec := s.claim(params("key"))
	before := s.get("key")
	joint := s.join(rec)
	for _, end := range []semel.FinishParams{toReleased, toUnknown} {
		_, err := joint.Commit(s.Context(), end)
		assert.True(s, err != nil && !errors.Is(err, semel.ErrCommitRefused) && !errors.Is(err, semel.ErrStoreUnavailable),
			"Commit of an end that is %v is a misuse: got error %v", end.To, err)
	}
	s.unchanged(before)
	s.wantRows(0)
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

func jointRollsBack(s *subject) {
	rec := s.claim(params("key"))
	before := s.get("key")
	joint := s.join(rec)
	for range 2 {
		assert.NoError(s, joint.Rollback(), "Rollback")
	}
	s.wantRows(0)
	s.unchanged(before)
	s.end(rec, toReleased)
	s.claim(params("key"))
}

func jointCommitsLapsed(s *subject) {
	rec := s.claim(params("key"))
	s.lapse()
	s.want(params("key"), semel.BeginUnknown)
	wantHeld(s, s.commit(s.join(rec), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

func jointCommitsUnknown(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toUnknown)
	wantHeld(s, s.commit(s.join(rec), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
	s.want(params("key"), semel.BeginReplay)
}

func jointFinal(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toReleased)
	before := s.get("key")
	wantHeld(s, s.commit(s.join(rec), toDone), semel.HeldFinal, semel.StateReleased)
	s.wantRows(0)
	s.unchanged(before)
}

func jointAnswerLost(s *subject) {
	rec := s.claim(params("key"))
	s.commit(s.join(rec), toDone)
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateDone, "state")
	assert.Equal(s, got.Claim(), rec.Claim(), "claim")
	s.end(rec, toDone)
	s.wantRows(1)
}

func jointAgainstSweep(s *subject) {
	s.end(s.claim(params("expired")), toDone)
	rec := s.claim(params("key"))
	s.advance(retention + slack)
	joint := s.join(rec)
	swept := make(chan error, 1)
	go func() {
		_, err := s.store.Sweep(s.Context(), 100)
		swept <- err
	}()
	wantHeld(s, s.commit(joint, toDone), semel.HeldYes, semel.StateDone)
	assert.NoError(s, <-swept, "Sweep")
	s.wantRows(1)
	s.want(params("key"), semel.BeginReplay)
}

func jointSuperseded(s *subject) {
	first, second := s.takeOver("key")
	wantHeld(s, s.commit(s.join(first), toDone), semel.HeldSuperseded, semel.StateRunning)
	s.wantRows(0)
	wantHeld(s, s.commit(s.join(second), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

func jointSupersededByDone(s *subject) {
	first, second := s.takeOver("key")
	wantHeld(s, s.commit(s.join(second), toDone), semel.HeldYes, semel.StateDone)
	before := s.get("key")
	wantHeld(s, s.commit(s.join(first), toDoneWith(semel.Reply{Status: 500})), semel.HeldSuperseded, semel.StateDone)
	s.wantRows(1)
	s.unchanged(before)
}

func jointOfEarlierLife(s *subject) {
	first := s.claim(params("key"))
	s.end(first, toReleased)
	s.advance(retention + slack)
	s.claim(params("key"))
	wantHeld(s, s.commit(s.join(first), toDone), semel.HeldSuperseded, semel.StateRunning)
	s.wantRows(0)
}

func jointAgainstTakeovers(s *subject) {
	const takers = 16
	committed := 0
	inRounds(s, lapsed, func(key string, first semel.Record) {
		joint := s.joint(first)
		won := atOnce(s, 1+takers, func(i int) (bool, error) {
			if i > 0 {
				res, err := s.store.Begin(s.Context(), resuming(key))
				return res.Outcome == semel.BeginClaimed, err
			}
			if err := s.h.Business.Write(joint.Context(s.Context())); err != nil {
				return false, err
			}
			held, err := joint.Commit(s.Context(), toDone)
			return held.Status == semel.HeldYes, err
		})
		winners := 0
		for _, w := range won {
			if w {
				winners++
			}
		}
		if winners != 1 {
			s.Fatalf("got %d winners, the commit held: %v; want one", winners, won[0])
		}
		if won[0] {
			committed++
		}
		s.wantRows(committed)
	})
}
