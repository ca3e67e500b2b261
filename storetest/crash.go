package storetest

import (
	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// The crash points as one process can play them: a worker that died is a claim
// that nobody ends. processChapters play them with real processes.
var crashChapters = []chapter{
	{name: "crash point 2: a Begin that executes late", rules: []rule{
		{name: "it makes no claim that nobody stands behind, once its retry has claimed and released", test: lateBegin},
		{name: "it is shown the reply, once its retry has claimed and is done", test: lateBeginAfterDone},
	}},
	{name: "crash point 5: the owner dies after its claim", rules: []rule{
		{name: "under Hold its key answers Unknown until somebody settles", test: ownerDiesUnderHold},
		{name: "under Resume its key is run again, with the same operation id", test: ownerDiesUnderResume},
		{name: "under Resume its key answers Unknown past ResumeWithin", test: ownerDiesPastResumeWithin},
	}},
	{name: "crash point 7: the owner is frozen, a rival finishes, the owner wakes", rules: []rule{
		{name: "all its calls are refused and change nothing", test: ownerWakesSuperseded},
		{name: "its own Begin, sent again, is answered with the rival's reply", test: ownerWakesAndBegins},
	}},
	{name: "crash point 8: the owner is frozen, nobody takes over, the owner wakes", rules: []rule{
		{name: "its Finish is accepted, though a rival has seen Unknown (R16)", test: ownerWakesHeld},
	}},
}

func lateBegin(s *subject) {
	p := resuming("key")
	s.end(s.claim(p), toReleased)
	s.want(p, semel.BeginReleased)
	s.lapse()
	s.want(p, semel.BeginReleased)
	s.claim(resuming("key"))
}

func lateBeginAfterDone(s *subject) {
	p := params("key")
	s.end(s.claim(p), toDone)
	s.lapse()
	s.want(p, semel.BeginReplay)
}

func ownerDiesUnderHold(s *subject) {
	s.claim(params("key"))
	s.want(params("key"), semel.BeginBusy)
	s.lapse()
	s.want(params("key"), semel.BeginUnknown)
	s.settle("key", settling(toReleased, semel.OperationID{}))
	s.claim(params("key"))
}

func ownerDiesUnderResume(s *subject) {
	first := s.claim(resuming("key"))
	s.want(resuming("key"), semel.BeginBusy)
	s.lapse()
	second := s.claim(resuming("key"))
	assert.Equal(s, second.OperationID, first.OperationID, "operation id")
	assert.Equal(s, second.Attempt, 2, "attempt")
	s.end(second, toDone)
	s.want(resuming("key"), semel.BeginReplay)
}

func ownerDiesPastResumeWithin(s *subject) {
	s.claim(resuming("key"))
	s.advance(resumeWithin + slack)
	s.want(resuming("key"), semel.BeginUnknown)
}

func ownerWakesSuperseded(s *subject) {
	first, second := s.takeOver("key")
	s.end(second, toDone)
	before := s.get("key")
	for _, to := range []semel.FinishParams{toDone, toDoneNoRep, toReleased, toUnknown} {
		wantHeld(s, s.finish(first, to), semel.HeldSuperseded, semel.StateDone)
	}
	wantHeld(s, s.extend(first, semel.ExtendParams{Lease: lease, ReplyStarted: true}), semel.HeldSuperseded, semel.StateDone)
	s.unchanged(before)
}

func ownerWakesAndBegins(s *subject) {
	p := resuming("key")
	s.claim(p)
	s.lapse()
	s.end(s.claim(resuming("key")), toDone)
	res := s.want(p, semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
}

func ownerWakesHeld(s *subject) {
	rec := s.claim(params("key"))
	s.lapse()
	for range 3 {
		s.want(params("key"), semel.BeginUnknown)
	}
	s.end(rec, toDone)
	s.want(params("key"), semel.BeginReplay)
}
