package storetest

import (
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var leaseChapters = []chapter{
	{name: "Extend", rules: []rule{
		{name: "a lease is renewed from now on", test: extendRenews},
		{name: "a shorter lease than the one left is taken as said", test: extendShortens},
		{name: "a token with another attempt is refused, and so is an attempt with another token", test: extendNeedsBoth},
		{name: "the mark that the reply has started stays", test: replyStartedStays},
		{name: "on an unknown record it renews nothing, but saves the mark (M5)", test: extendOfUnknown},
		{name: "on a claim that is done or released it is refused as final", test: extendOfFinal},
	}},
	{name: "crash point 14: Extend", rules: []rule{
		{name: "twice in one tick is held twice", test: extendTwice},
		{name: "after its lease has lapsed it is held: lapsed is not superseded (R16)", test: extendOfLapsed},
		{name: "after a rival has seen Unknown it is held", test: extendAfterRival},
		{name: "after a takeover it is refused, and the rival's lease stays as it was", test: extendOfSuperseded},
		{name: "after Finish it is refused and brings nothing back", test: extendAfterFinish},
		{name: "two leases late, when the store was out of reach, it is held", test: extendAfterOutage},
	}},
}

var renew = semel.ExtendParams{Lease: lease}

func extendRenews(s *subject) {
	rec := s.claim(params("key"))
	for range 3 {
		s.advance(lease / 2)
		wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
		got := s.get("key")
		near(s, got.LeaseLeft(), lease, "lease left")
	}
	got := s.get("key")
	near(s, got.AttemptAge(), lease*3/2, "age of the attempt")
	s.want(resuming("key"), semel.BeginBusy)
}

func extendShortens(s *subject) {
	rec := s.claim(params("key"))
	wantHeld(s, s.extend(rec, semel.ExtendParams{Lease: 2 * slack}), semel.HeldYes, semel.StateRunning)
	got := s.get("key")
	near(s, got.LeaseLeft(), 2*slack, "lease left")
}

func extendNeedsBoth(s *subject) {
	first, second := s.takeOver("key")
	before := s.get("key")
	for _, c := range []semel.Claim{
		{Scope: scope, Key: "key", Token: first.Token, Attempt: second.Attempt},
		{Scope: scope, Key: "key", Token: second.Token, Attempt: first.Attempt},
		{Scope: scope, Key: "key", Token: semel.NewToken(), Attempt: second.Attempt},
	} {
		held, err := s.store.Extend(s.Context(), c, semel.ExtendParams{Lease: 9 * lease, ReplyStarted: true})
		assert.NoError(s, err, "Extend")
		wantHeld(s, held, semel.HeldSuperseded, semel.StateRunning)
	}
	s.unchanged(before)
}

func replyStartedStays(s *subject) {
	rec := s.claim(params("key"))
	s.extend(rec, semel.ExtendParams{Lease: lease, ReplyStarted: true})
	wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
	assert.Equal(s, s.get("key").ReplyStarted, true, "reply started")
}

func extendOfUnknown(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toUnknown)
	before := s.get("key")
	wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateUnknown)
	s.unchanged(before)
	wantHeld(s, s.extend(rec, semel.ExtendParams{Lease: lease, ReplyStarted: true}), semel.HeldYes, semel.StateUnknown)
	assert.Equal(s, s.get("key").ReplyStarted, true, "reply started")
	assert.Equal(s, s.get("key").State, semel.StateUnknown, "state")
	p := resuming("key")
	s.want(p, semel.BeginUnknown)
}

func extendOfFinal(s *subject) {
	for key, p := range map[string]semel.FinishParams{"done": toDone, "released": toReleased} {
		rec := s.claim(params(key))
		s.end(rec, p)
		before := s.get(key)
		wantHeld(s, s.extend(rec, semel.ExtendParams{Lease: lease, ReplyStarted: true}), semel.HeldFinal, p.To)
		s.unchanged(before)
	}
}

func extendTwice(s *subject) {
	rec := s.claim(params("key"))
	for range 20 {
		wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
	}
}

func extendOfLapsed(s *subject) {
	rec := s.claim(params("key"))
	s.lapse()
	wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
	s.want(resuming("key"), semel.BeginBusy)
	s.end(rec, toDone)
}

func extendAfterRival(s *subject) {
	rec := s.claim(params("key"))
	s.lapse()
	s.want(params("key"), semel.BeginUnknown)
	wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
	s.want(params("key"), semel.BeginBusy)
}

func extendOfSuperseded(s *subject) {
	first, _ := s.takeOver("key")
	before := s.get("key")
	s.advance(slack)
	wantHeld(s, s.extend(first, semel.ExtendParams{Lease: 9 * lease, ReplyStarted: true}), semel.HeldSuperseded, semel.StateRunning)
	s.unchanged(before)
}

func extendAfterFinish(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toDone)
	wantHeld(s, s.extend(rec, renew), semel.HeldFinal, semel.StateDone)
	s.want(params("key"), semel.BeginReplay)
}

func extendAfterOutage(s *subject) {
	rec := s.claim(params("key"))
	s.advance(3 * lease)
	wantHeld(s, s.extend(rec, renew), semel.HeldYes, semel.StateRunning)
	got := s.get("key")
	near(s, got.LeaseLeft(), lease, "lease left")
}
