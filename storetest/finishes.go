package storetest

import (
	"fmt"
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var finishChapters = []chapter{
	{name: "Finish", rules: slices.Concat(
		[]rule{
			{name: "a claim ends done with the reply kept", test: finishDone},
			{name: "a claim ends done with its status alone, the reply not kept", test: finishDoneNoReply},
			{name: "a claim ends released, keeping its digests and token (R15)", test: finishReleased},
			{name: "a claim ends unknown, and never expires", test: finishUnknown},
			{name: "a claim whose lease has lapsed ends like any other (R16)", test: finishLapsed},
			{name: "a token with another attempt is refused, and so is an attempt with another token", test: finishNeedsBoth},
			{name: "a superseded claim can end nothing, whatever the later one has come to (promise 4)", test: finishSuperseded},
			{name: "a claim of an earlier life of the key can end nothing", test: finishOfEarlierLife},
		},
		finalRules(),
	)},
	{name: "crash point 9: Finish, and its answer is lost", rules: []rule{
		{name: "the same Finish again is held, and the first one's reply and times stay", test: finishAgain},
		{name: "the same Finish again after the lease is held", test: finishAgainLate},
		{name: "the same Finish sent many times at once is held every time", test: finishAtOnce},
		{name: "the reply that is replayed is the one that was saved first", test: finishAgainReplays},
	}},
}

// finalRules are those on a second Finish: done and released are final, and
// unknown is not (M5).
func finalRules() []rule {
	outcomes := []struct {
		name string
		p    semel.FinishParams
	}{{"done", toDone}, {"done without a reply", toDoneNoRep}, {"released", toReleased}, {"unknown", toUnknown}}
	var rules []rule
	for i, first := range outcomes {
		for j, second := range outcomes {
			if i == j {
				continue
			}
			if first.p.To == semel.StateUnknown {
				rules = append(rules, rule{
					name: fmt.Sprintf("unknown may still become %s by its own attempt (M5)", second.name),
					test: func(s *subject) { finishTwice(s, first.p, second.p, semel.HeldYes) },
				})
				continue
			}
			rules = append(rules, rule{
				name: fmt.Sprintf("%s is final and does not become %s (M5)", first.name, second.name),
				test: func(s *subject) { finishTwice(s, first.p, second.p, semel.HeldFinal) },
			})
		}
	}
	return rules
}

func finishTwice(s *subject, first, second semel.FinishParams, want semel.HeldStatus) {
	rec := s.claim(params("key"))
	s.end(rec, first)
	before := s.get("key")
	if want == semel.HeldFinal {
		wantHeld(s, s.finish(rec, second), want, first.To)
		s.unchanged(before)
		return
	}
	wantHeld(s, s.finish(rec, second), want, second.To)
	after := s.get("key")
	assert.Equal(s, after.State, second.To, "state")
	assert.Equal(s, after.ReplyKept, second.KeepReply, "reply kept")
	near(s, after.Expires.Sub(after.Now), retention, "time until it expires")
}

func finishDone(s *subject) {
	rec := s.claim(params("key"))
	s.advance(lease / 2)
	s.end(rec, toDone)
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateDone, "state")
	assert.Equal(s, got.ReplyKept, true, "reply kept")
	assert.Equal(s, normal(got.Reply), normal(toDone.Reply), "reply")
	near(s, got.Now.Sub(got.Finished), 0, "age since finished")
	near(s, got.Expires.Sub(got.Finished), retention, "retention, which counts from completion")
	assert.Equal(s, got.Claim(), rec.Claim(), "claim")
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, res.Record.ReplyKept, true, "reply kept, in the answer")
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply, in the answer")
}

func finishDoneNoReply(s *subject) {
	p := toDoneNoRep
	p.Reply = semel.Reply{Status: 202, Header: semel.Header{"X": {"y"}}, Body: []byte("not kept")}
	s.end(s.claim(params("key")), p)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, res.Record.ReplyKept, false, "reply kept")
	assert.Equal(s, normal(res.Record.Reply), semel.Reply{Status: 202}, "reply")
}

func finishReleased(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toReleased)
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateReleased, "state")
	assert.Equal(s, got.Fingerprint, rec.Fingerprint, "fingerprint")
	assert.Equal(s, got.Claim(), rec.Claim(), "claim")
	assert.Equal(s, got.ReplyKept, false, "reply kept")
	near(s, got.Expires.Sub(got.Now), retention, "time until it expires")
}

func finishUnknown(s *subject) {
	p := toUnknown
	p.KeepReply, p.Reply = true, toDone.Reply
	s.end(s.claim(params("key")), p)
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateUnknown, "state")
	assert.Equal(s, got.ReplyKept, false, "reply kept")
	assert.Equal(s, normal(got.Reply), semel.Reply{}, "reply")
	assert.True(s, got.Expires.IsZero(), "an unknown record does not expire")
}

func finishLapsed(s *subject) {
	for _, to := range []semel.FinishParams{toDone, toReleased, toUnknown} {
		rec := s.claim(params(to.To.String()))
		s.lapse()
		s.end(rec, to)
	}
}

func finishNeedsBoth(s *subject) {
	first, second := s.takeOver("key")
	before := s.get("key")
	for _, c := range []semel.Claim{
		{Scope: scope, Key: "key", Token: first.Token, Attempt: second.Attempt},
		{Scope: scope, Key: "key", Token: second.Token, Attempt: first.Attempt},
		{Scope: scope, Key: "key", Token: semel.NewToken(), Attempt: second.Attempt},
	} {
		held, err := s.store.Finish(s.Context(), c, toDone)
		assert.NoError(s, err, "Finish")
		wantHeld(s, held, semel.HeldSuperseded, semel.StateRunning)
	}
	s.unchanged(before)
}

func finishSuperseded(s *subject) {
	for _, later := range []semel.FinishParams{toDone, toDoneNoRep, toUnknown} {
		key := fmt.Sprint(later.To, later.KeepReply)
		first, second := s.takeOver(key)
		s.end(second, later)
		before := s.get(key)
		for _, to := range []semel.FinishParams{toDoneWith(semel.Reply{Status: 500}), toReleased, toUnknown} {
			wantHeld(s, s.finish(first, to), semel.HeldSuperseded, later.To)
		}
		s.unchanged(before)
	}
}

func finishOfEarlierLife(s *subject) {
	first := s.claim(params("key"))
	s.end(first, toReleased)
	s.advance(retention + slack)
	s.claim(params("key"))
	before := s.get("key")
	assert.Equal(s, before.Attempt, first.Attempt, "attempt, which both lives count from 1")
	wantHeld(s, s.finish(first, toDone), semel.HeldSuperseded, semel.StateRunning)
	s.unchanged(before)
}

func finishAgain(s *subject) {
	for _, to := range []semel.FinishParams{toDone, toDoneNoRep, toReleased, toUnknown} {
		key := fmt.Sprint(to.To, to.KeepReply)
		rec := s.claim(params(key))
		s.end(rec, to)
		before := s.get(key)
		s.advance(slack)
		s.end(rec, to)
		s.unchanged(before)
	}
}

func finishAgainLate(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	s.lapse()
	s.end(rec, toDone)
}

func finishAtOnce(s *subject) {
	rec := s.claim(params("key"))
	helds := atOnce(s, racers, func(int) (semel.Held, error) {
		return s.store.Finish(s.Context(), rec.Claim(), toDone)
	})
	for _, held := range helds {
		wantHeld(s, held, semel.HeldYes, semel.StateDone)
	}
	s.want(params("key"), semel.BeginReplay)
}

func finishAgainReplays(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	s.end(rec, toDoneWith(semel.Reply{Status: 201, Body: []byte("another")}))
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
}
