package storetest

import (
	"slices"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var settleChapters = []chapter{
	{name: "a forced Begin", rules: slices.Concat(
		inEach("it claims the next attempt, and leaves it open, of a record", []situation{lapsed, unknown}, forceClaims),
		inEach("it is refused, and changes nothing, on a record", []situation{running, released, done, doneNoReply}, forceRefused),
		[]rule{
			{name: "it is refused on a key without a record, and makes none", test: forceOfAbsent},
			{name: "it is refused when another attempt has come since the look (M7)", test: forceExpectsAttempt},
			{name: "it is refused when the same attempt of another life has come (M7)", test: forceExpectsToken},
			{name: "it is refused until the latest claim is QuietFor old on the store's clock (M6)", test: forceWaitsForQuiet},
			{name: "it fences the attempt it settles", test: forceFences},
			{name: "it needs no fingerprint and no credential, and the record keeps its own", test: forceKeepsDigests},
			{name: "repeated, it gets its claim again", test: forceAgain},
			{name: "its settler may die: the record is open and lapses", test: settlerDies},
		},
	)},
	{name: "a settlement", rules: []rule{
		{name: "done with a reply is replayed from then on", test: settleDone},
		{name: "done without a reply is done, not kept", test: settleDoneNoReply},
		{name: "not applied frees the key, also of an open record, which it closes (M2)", test: settleNotApplied},
		{name: "not applied frees the key though its reply had started", test: settleNotAppliedReplyStarted},
		{name: "start over raises the generation and names the operation anew", test: settleStartOver},
		{name: "start over, sent twice, raises the generation once", test: settleStartOverTwice},
		{name: "a raised generation outlives retention and sweep, and so does its operation id (M8)", test: tombstone},
	}},
	{name: "audit", rules: []rule{
		{name: "a settlement leaves its forced Begin and its end, in order", needs: Auditing, test: auditInOrder},
		{name: "a refused forced Begin leaves no entry", needs: Auditing, test: auditOfRefused},
		{name: "what is sent twice leaves one entry", needs: Auditing, test: auditOnce},
		{name: "the entries outlive the record, and its tombstone", needs: Auditing, test: auditOutlives},
		{name: "the entries outlive the life they are of: those of the next come after them", needs: Auditing, test: auditOfLives},
	}},
}

// forced are the params of a settler who has just looked at rec.
func forced(rec semel.Record) semel.BeginParams {
	return semel.BeginParams{
		Scope: rec.Scope,
		Key:   rec.Key,
		Token: semel.NewToken(),
		Lease: lease,
		Force: &semel.Force{
			Attempt: rec.Attempt,
			Token:   rec.Token,
			Audit:   semel.Audit{Actor: "ops", Reason: "asked the bank"},
		},
	}
}

func settling(p semel.FinishParams, startOver semel.OperationID) semel.FinishParams {
	p.Settlement = &semel.Settlement{
		Audit:     semel.Audit{Actor: "ops", Reason: "the bank says so", Override: true},
		StartOver: startOver,
	}
	return p
}

// settle takes over an unknown record and ends it with p.
func (s *subject) settle(key string, p semel.FinishParams) {
	s.Helper()
	s.end(s.claim(forced(s.get(key))), p)
}

func forceClaims(s *subject, in situation) {
	first := in.make(s, params("key"))
	seen := s.get("key")
	p := forced(seen)
	res := s.want(p, semel.BeginClaimed)
	assert.Equal(s, res.From, seen.State, "state it was found in")
	rec := s.get("key")
	assert.Equal(s, rec.Claim(), semel.Claim{Scope: scope, Key: "key", Token: p.Token, Attempt: first.Attempt + 1}, "claim")
	assert.Equal(s, rec.State, semel.StateRunning, "state")
	assert.Equal(s, rec.Open, true, "open")
	assert.Equal(s, rec.OperationID, first.OperationID, "operation id")
	s.want(resuming("key"), semel.BeginBusy)
}

func forceRefused(s *subject, in situation) {
	in.make(s, params("key"))
	before := s.get("key")
	want := map[semel.State]semel.BeginOutcome{
		semel.StateRunning:  semel.BeginBusy,
		semel.StateReleased: semel.BeginReleased,
		semel.StateDone:     semel.BeginReplay,
	}[before.State]
	res := s.want(forced(before), want)
	assert.Equal(s, res.Record.State, before.State, "state, in the answer")
	s.unchanged(before)
}

func forceOfAbsent(s *subject) {
	s.want(forced(semel.Record{Scope: scope, Key: "key", Attempt: 1}), semel.BeginReleased)
	assert.Equal(s, s.get("key").State, semel.StateAbsent, "state")
	s.claim(params("key"))
}

func forceExpectsAttempt(s *subject) {
	s.end(s.claim(resuming("key")), toUnknown)
	seen := s.get("key")
	s.end(s.claim(resuming("key")), toUnknown)
	before := s.get("key")
	s.want(forced(seen), semel.BeginUnknown)
	p := forced(before)
	p.Force.Attempt = seen.Attempt
	s.want(p, semel.BeginUnknown)
	s.unchanged(before)
}

func forceExpectsToken(s *subject) {
	rec := s.claim(params("key"))
	s.end(rec, toUnknown)
	seen := s.get("key")
	s.end(rec, toReleased)
	s.advance(retention + slack)
	s.end(s.claim(params("key")), toUnknown)
	before := s.get("key")
	assert.Equal(s, before.Attempt, seen.Attempt, "attempt, which is the same in both lives")
	s.want(forced(seen), semel.BeginUnknown)
	s.unchanged(before)
}

func forceWaitsForQuiet(s *subject) {
	rec := s.claim(params("key"))
	s.advance(lease / 2)
	s.end(rec, toUnknown)
	before := s.get("key")
	p := forced(before)
	p.Force.QuietFor = lease
	s.want(p, semel.BeginUnknown)
	s.unchanged(before)
	s.advance(lease/2 - slack)
	s.want(p, semel.BeginUnknown)
	s.advance(2 * slack)
	s.claim(p)
}

func forceFences(s *subject) {
	first := s.claim(params("key"))
	s.lapse()
	settler := s.claim(forced(s.get("key")))
	wantHeld(s, s.finish(first, toDone), semel.HeldSuperseded, semel.StateRunning)
	wantHeld(s, s.extend(first, renew), semel.HeldSuperseded, semel.StateRunning)
	s.end(settler, settling(toReleased, semel.OperationID{}))
	wantHeld(s, s.finish(first, toDone), semel.HeldSuperseded, semel.StateReleased)
}

func forceKeepsDigests(s *subject) {
	p := params("key")
	p.Credential, p.Trace = semel.Digest{7}, "first"
	first := s.claim(p)
	s.end(first, toUnknown)
	s.settle("key", settling(toDone, semel.OperationID{}))
	rec := s.get("key")
	assert.Equal(s, rec.Fingerprint, first.Fingerprint, "fingerprint")
	assert.Equal(s, rec.Credential, first.Credential, "credential")
	assert.Equal(s, rec.Trace, "first", "trace")
	p.Token = semel.NewToken()
	s.want(p, semel.BeginReplay)
	s.want(params("key"), semel.BeginMismatch)
}

func forceAgain(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	p := forced(s.get("key"))
	first := s.claim(p)
	again := s.claim(p)
	assert.Equal(s, again.Claim(), first.Claim(), "claim")
}

func settlerDies(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.claim(forced(s.get("key")))
	s.lapse()
	s.want(params("key"), semel.BeginUnknown)
	third := s.claim(forced(s.get("key")))
	assert.Equal(s, third.Attempt, 3, "attempt")
	wantHeld(s, s.finish(third, toReleased), semel.HeldYes, semel.StateUnknown)
}

func settleDone(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toDone, semel.OperationID{}))
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
	assert.Equal(s, res.Record.Open, false, "open")
	near(s, res.Record.Expires.Sub(res.Record.Now), retention, "time until it expires")
}

func settleDoneNoReply(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toDoneNoRep, semel.OperationID{}))
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, res.Record.ReplyKept, false, "reply kept")
}

func settleNotApplied(s *subject) {
	first, second := s.takeOver("key")
	s.end(second, toUnknown)
	s.settle("key", settling(toReleased, semel.OperationID{}))
	rec := s.get("key")
	assert.Equal(s, rec.State, semel.StateReleased, "state")
	assert.Equal(s, rec.Open, false, "open")
	assert.Equal(s, rec.Generation, 0, "generation")
	next := s.claim(params("key"))
	assert.Equal(s, next.Attempt, 4, "attempt")
	assert.Equal(s, next.OperationID, first.OperationID, "operation id")
	s.end(next, toReleased)
}

func settleNotAppliedReplyStarted(s *subject) {
	rec := s.claim(params("key"))
	s.extend(rec, semel.ExtendParams{Lease: lease, ReplyStarted: true})
	s.end(rec, toUnknown)
	s.settle("key", settling(toReleased, semel.OperationID{}))
	s.claim(params("key"))
	s.lapse()
	s.claim(resuming("key"))
}

var secondGeneration = semel.NewOperationID(semel.DefaultService, scope, "key", 1)

func settleStartOver(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toReleased, secondGeneration))
	rec := s.get("key")
	assert.Equal(s, rec.State, semel.StateReleased, "state")
	assert.Equal(s, rec.Generation, 1, "generation")
	assert.Equal(s, rec.OperationID, secondGeneration, "operation id")
	next := s.claim(params("key"))
	assert.Equal(s, next.Attempt, 3, "attempt")
	assert.Equal(s, next.OperationID, secondGeneration, "operation id of the next attempt")
	s.lapse()
	assert.Equal(s, s.claim(resuming("key")).OperationID, secondGeneration, "operation id of the one after")
}

func settleStartOverTwice(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	settler := s.claim(forced(s.get("key")))
	s.end(settler, settling(toReleased, secondGeneration))
	before := s.get("key")
	s.end(settler, settling(toReleased, secondGeneration))
	s.unchanged(before)
	assert.Equal(s, before.Generation, 1, "generation")
}

func tombstone(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	s.settle("key", settling(toReleased, secondGeneration))
	for range 2 {
		s.advance(retention + slack)
		assert.Equal(s, s.sweep(100), 1, "swept")
		assert.Equal(s, s.sweep(100), 0, "swept again")
		rec := s.get("key")
		assert.Equal(s, rec.State, semel.StateAbsent, "state")
		assert.Equal(s, rec.Generation, 1, "generation")
		assert.Equal(s, rec.OperationID, secondGeneration, "operation id")
		assert.Equal(s, normal(rec.Reply), semel.Reply{}, "reply")
		next := s.claim(params("key"))
		assert.Equal(s, next.Attempt, 1, "attempt of the new life")
		assert.Equal(s, next.Generation, 1, "generation of the new life")
		assert.Equal(s, next.OperationID, secondGeneration, "operation id of the new life")
		s.end(next, toDone)
	}
	s.advance(retention + slack)
	next := s.claim(params("key"))
	assert.Equal(s, next.OperationID, secondGeneration, "operation id of a new life that no sweep came before")
}

func (s *subject) audits(key string) []semel.AuditEntry {
	s.Helper()
	auditor, ok := semel.As[semel.Auditor](s.store)
	if !ok {
		s.Fatal("the store is no semel.Auditor")
	}
	entries, err := auditor.Audits(s.Context(), scope, key)
	assert.NoError(s, err, "Audits")
	return entries
}

func auditInOrder(s *subject) {
	for _, key := range []string{"key", "other"} {
		s.end(s.claim(params(key)), toUnknown)
	}
	p := forced(s.get("key"))
	settler := s.claim(p)
	s.advance(lease / 2)
	end := settling(toDone, semel.OperationID{})
	s.end(settler, end)
	entries := s.audits("key")
	if len(entries) != 2 {
		s.Fatalf("got %d entries, want 2", len(entries))
	}
	now := s.get("key").Now
	near(s, now.Sub(entries[0].At), lease/2, "age of the forced Begin")
	near(s, now.Sub(entries[1].At), 0, "age of the end")
	for i := range entries {
		entries[i].At = time.Time{}
	}
	assert.Equal(s, entries, []semel.AuditEntry{
		{Scope: scope, Key: "key", Attempt: 2, To: semel.StateRunning, Audit: p.Force.Audit},
		{Scope: scope, Key: "key", Attempt: 2, To: semel.StateDone, Audit: end.Settlement.Audit},
	}, "entries")
	assert.Equal(s, len(s.audits("other")), 0, "entries of another key")
}

func auditOfRefused(s *subject) {
	s.claim(params("key"))
	s.want(forced(s.get("key")), semel.BeginBusy)
	s.want(forced(semel.Record{Scope: scope, Key: "absent"}), semel.BeginReleased)
	assert.Equal(s, len(s.audits("key"))+len(s.audits("absent")), 0, "entries")
}

func auditOnce(s *subject) {
	s.end(s.claim(params("key")), toUnknown)
	p := forced(s.get("key"))
	s.claim(p)
	settler := s.claim(p)
	s.end(settler, settling(toDone, semel.OperationID{}))
	s.end(settler, settling(toDone, semel.OperationID{}))
	assert.Equal(s, len(s.audits("key")), 2, "entries")
}

func auditOutlives(s *subject) {
	for key, startOver := range map[string]semel.OperationID{
		"swept":        {},
		"started over": semel.NewOperationID(semel.DefaultService, scope, "started over", 1),
	} {
		s.end(s.claim(params(key)), toUnknown)
		s.settle(key, settling(toReleased, startOver))
		before := s.audits(key)
		assert.Equal(s, len(before), 2, "entries of the one %s", key)
		s.advance(retention + slack)
		assert.Equal(s, s.sweep(100), 1, "swept")
		assert.Equal(s, s.audits(key), before, "entries of the one %s", key)
	}
}

func auditOfLives(s *subject) {
	var all []semel.AuditEntry
	for life := range 3 {
		s.end(s.claim(params("key")), toUnknown)
		s.settle("key", settling(toReleased, semel.OperationID{}))
		entries := s.audits("key")
		if len(entries) != 2*(life+1) {
			s.Fatalf("got %d entries after life %d, want two of each", len(entries), life)
		}
		assert.True(s, slices.Equal(entries[:len(all)], all), "the entries of earlier lives are as they were")
		all = entries
		s.advance(retention + slack)
	}
}
