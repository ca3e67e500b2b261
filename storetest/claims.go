package storetest

import (
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var claimChapters = []chapter{
	{name: "claim", rules: []rule{
		{name: "a key that nobody used is absent, which is no error", test: unusedKeyIsAbsent},
		{name: "the first caller of a key claims it as attempt 1", test: firstCallerClaims},
		{name: "a record keeps what its first caller gave", test: recordKeepsWhatItWasGiven},
		{name: "a second caller finds a live claim busy, with its lease and age", test: liveClaimIsBusy},
		{name: "a caller who finds a claim busy changes nothing", test: busyChangesNothing},
		{name: "a released key is claimed again at once, also under Hold", test: releasedIsClaimedAgain},
		{name: "a released key is claimed again past ResumeWithin, being known not applied", test: releasedHasNoResumeWithin},
		{name: "a reply that a released attempt had started does not bind the next attempt", test: releasedForgetsReplyStarted},
		{name: "keys do not meet", test: keysDoNotMeet},
	}},
	{name: "the answer of Begin", rules: slices.Concat(
		[]rule{{name: "a new claim is answered with what Get reads", test: newClaimIsTheRecord}},
		inEach("it is what Get reads, whoever asks, of a record", situations, answerIsTheRecord),
	)},
	{name: "own token", rules: []rule{
		{name: "the token of a running claim gets that claim again, its lease renewed (R15)", test: ownTokenGetsItsClaim},
		{name: "the token of a lapsed claim gets that claim again, also under Hold", test: ownTokenGetsItsLapsedClaim},
		{name: "the token of a done claim is shown its reply", test: ownTokenOfDone},
		{name: "the token of a released claim is told so and claims nothing (R15)", test: ownTokenOfReleased},
		{name: "the token of an unknown claim is told so and claims nothing, also under Resume", test: ownTokenOfUnknown},
		{name: "a repeat that comes after its claim was released and claimed by another claims nothing", test: ownTokenAfterAnother},
	}},
}

func unusedKeyIsAbsent(s *subject) {
	rec := s.get("key")
	assert.Equal(s, rec.State, semel.StateAbsent, "state")
	assert.Equal(s, rec.Generation, 0, "generation")
	p := params("key")
	claim := semel.Claim{Scope: scope, Key: "key", Token: p.Token, Attempt: 1}
	held, err := s.store.Extend(s.Context(), claim, semel.ExtendParams{Lease: lease})
	assert.NoError(s, err, "Extend")
	wantHeld(s, held, semel.HeldSuperseded, semel.StateAbsent)
	held, err = s.store.Finish(s.Context(), claim, toDone)
	assert.NoError(s, err, "Finish")
	wantHeld(s, held, semel.HeldSuperseded, semel.StateAbsent)
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state afterwards")
}

func firstCallerClaims(s *subject) {
	p := params("key")
	res := s.want(p, semel.BeginClaimed)
	assert.Equal(s, res.From, semel.StateAbsent, "state it was found in")
	assert.Equal(s, res.Record.State, semel.StateRunning, "state")
	assert.Equal(s, res.Record.Claim(), semel.Claim{Scope: scope, Key: "key", Token: p.Token, Attempt: 1}, "claim")
	near(s, res.Record.LeaseLeft(), lease, "lease left")
	got := s.get("key")
	assert.Equal(s, got.State, semel.StateRunning, "state as read back")
	assert.Equal(s, got.Claim(), res.Record.Claim(), "claim as read back")
}

func recordKeepsWhatItWasGiven(s *subject) {
	p := params("key")
	p.Fingerprint = semel.Fingerprint{Raw: semel.Digest{1}, Meaning: semel.Digest{2, 0, 3}, Policy: "json/1"}
	p.Credential = semel.Digest{4}
	p.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	s.claim(p)
	rec := s.get("key")
	assert.Equal(s, rec.Scope, p.Scope, "scope")
	assert.Equal(s, rec.Key, p.Key, "key")
	assert.Equal(s, rec.Fingerprint, p.Fingerprint, "fingerprint")
	assert.Equal(s, rec.Credential, p.Credential, "credential")
	assert.Equal(s, rec.Trace, p.Trace, "trace")
	assert.Equal(s, rec.OperationID, p.OperationID, "operation id")
	assert.Equal(s, rec.Generation, 0, "generation")
	assert.Equal(s, rec.Open, false, "open")
	assert.Equal(s, rec.ReplyStarted, false, "reply started")
	assert.Equal(s, rec.ReplyKept, false, "reply kept")
	near(s, rec.Now.Sub(rec.Created), 0, "age since created")
	near(s, rec.Now.Sub(rec.FirstStarted), 0, "age since the first start")
	near(s, rec.AttemptAge(), 0, "age of the attempt")
	assert.True(s, rec.Finished.IsZero(), "a running record has not finished")
	assert.True(s, rec.Expires.IsZero(), "a running record does not expire")
}

func liveClaimIsBusy(s *subject) {
	first := s.claim(params("key"))
	s.advance(lease / 2)
	for _, p := range []semel.BeginParams{params("key"), resuming("key")} {
		res := s.want(p, semel.BeginBusy)
		assert.Equal(s, res.Record.State, semel.StateRunning, "state")
		assert.Equal(s, res.Record.Claim(), first.Claim(), "claim")
		near(s, res.Record.LeaseLeft(), lease/2, "lease left")
		near(s, res.Record.AttemptAge(), lease/2, "age of the attempt")
	}
}

func busyChangesNothing(s *subject) {
	s.claim(params("key"))
	before := s.get("key")
	s.advance(slack)
	s.want(resuming("key"), semel.BeginBusy)
	s.unchanged(before)
}

func releasedIsClaimedAgain(s *subject) {
	first := s.claim(params("key"))
	s.end(first, toReleased)
	p := params("key")
	p.Trace = "another"
	res := s.want(p, semel.BeginClaimed)
	assert.Equal(s, res.From, semel.StateReleased, "state it was found in")
	rec := s.get("key")
	assert.Equal(s, rec.State, semel.StateRunning, "state")
	assert.Equal(s, rec.Attempt, 2, "attempt")
	assert.Equal(s, rec.Token, p.Token, "token")
	assert.Equal(s, rec.OperationID, first.OperationID, "operation id")
	assert.Equal(s, rec.Trace, first.Trace, "trace, which is the first attempt's")
	assert.Equal(s, rec.Open, false, "open")
	assert.True(s, rec.Finished.IsZero() && rec.Expires.IsZero(), "a claimed record has neither finished nor an expiry")
	wantHeld(s, s.finish(first, toDone), semel.HeldSuperseded, semel.StateRunning)
}

func releasedHasNoResumeWithin(s *subject) {
	s.end(s.claim(resuming("key")), toReleased)
	s.advance(resumeWithin + slack)
	s.claim(resuming("key"))
}

func releasedForgetsReplyStarted(s *subject) {
	first := s.claim(params("key"))
	s.extend(first, semel.ExtendParams{Lease: lease, ReplyStarted: true})
	s.end(first, toReleased)
	s.claim(params("key"))
	assert.Equal(s, s.get("key").ReplyStarted, false, "reply started")
	s.lapse()
	s.claim(resuming("key"))
}

func keysDoNotMeet(s *subject) {
	a, b := s.claim(params("a")), s.claim(params("b"))
	s.end(a, toDone)
	s.end(b, toReleased)
	s.want(params("a"), semel.BeginReplay)
	s.claim(params("b"))
	s.claim(params("c"))
}

// described are params in which every field that a record keeps is set.
func described(key string) semel.BeginParams {
	p := params(key)
	p.Fingerprint.Policy = "json/1"
	p.Credential = semel.Digest{4}
	p.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	p.AllInTx = true
	return p
}

// answered checks an answer against what Get reads after it, all of it. Only a
// replay has to have the reply.
func answered(s *subject, who string, res semel.BeginResult) {
	s.Helper()
	got, want := plain(res.Record), plain(s.get(res.Record.Key))
	if res.Outcome != semel.BeginReplay {
		got.Reply, want.Reply = semel.Reply{}, semel.Reply{}
	}
	assert.Equal(s, got, want, "the record, in the answer %q to %s", res.Outcome, who)
}

func newClaimIsTheRecord(s *subject) {
	answered(s, "the first caller", s.want(described("key"), semel.BeginClaimed))
}

func answerIsTheRecord(s *subject, in situation) {
	for who, ask := range map[string]func(first semel.BeginParams) semel.BeginParams{
		"its own token": func(first semel.BeginParams) semel.BeginParams { return first },
		"a repeat under Hold": func(first semel.BeginParams) semel.BeginParams {
			first.Token = semel.NewToken()
			return first
		},
		"a repeat under Resume": func(first semel.BeginParams) semel.BeginParams {
			first.Token, first.ResumeWithin = semel.NewToken(), resumeWithin
			first.Trace, first.AllInTx, first.Lease = "another", false, 2*lease
			return first
		},
		"another request": func(first semel.BeginParams) semel.BeginParams {
			first.Token, first.Fingerprint = semel.NewToken(), semel.FingerprintOf([]byte("another request"))
			return first
		},
		"a settler": func(first semel.BeginParams) semel.BeginParams { return forced(s.get(first.Key)) },
	} {
		first := described(who)
		in.make(s, first)
		s.advance(slack / 2)
		answered(s, who, s.begin(ask(first)))
	}
}

func ownTokenGetsItsClaim(s *subject) {
	p := params("key")
	first := s.claim(p)
	s.advance(lease / 2)
	again := s.claim(p)
	assert.Equal(s, again.Claim(), first.Claim(), "claim")
	near(s, again.LeaseLeft(), lease, "lease left")
	near(s, again.AttemptAge(), lease/2, "age of the attempt")
	rec := s.get("key")
	near(s, rec.LeaseLeft(), lease, "lease left, as read back")
	assert.Equal(s, rec.Open, false, "open")
}

func ownTokenGetsItsLapsedClaim(s *subject) {
	p := params("key")
	first := s.claim(p)
	s.lapse()
	again := s.claim(p)
	assert.Equal(s, again.Claim(), first.Claim(), "claim")
	s.want(resuming("key"), semel.BeginBusy)
}

func ownTokenOfDone(s *subject) {
	p := params("key")
	s.end(s.claim(p), toDone)
	before := s.get("key")
	res := s.want(p, semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	s.unchanged(before)
}

func ownTokenOfReleased(s *subject) {
	p := params("key")
	s.end(s.claim(p), toReleased)
	before := s.get("key")
	s.want(p, semel.BeginReleased)
	s.unchanged(before)
}

func ownTokenOfUnknown(s *subject) {
	p := resuming("key")
	s.end(s.claim(p), toUnknown)
	before := s.get("key")
	s.want(p, semel.BeginUnknown)
	s.unchanged(before)
}

func ownTokenAfterAnother(s *subject) {
	p := params("key")
	s.end(s.claim(p), toReleased)
	s.claim(params("key"))
	s.want(p, semel.BeginBusy)
}
