package storetest

import (
	"slices"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

var fingerprintChapters = []chapter{
	{name: "crash point 13: mismatch", rules: slices.Concat(
		inEach("another request is refused, and changes nothing, on a record", situations, otherRequestMismatches),
		inEach("another credential is refused, and changes nothing, on a record", situations, otherCredentialMismatches),
		inEach("another request claims, once it is expired, a record", []situation{released, done, doneNoReply}, otherRequestClaimsExpired),
		inEach("equal raw digests are one request, whatever the policy, on a record", []situation{running, done}, equalRawIsSame),
		inEach("equal meanings are one request under one policy, on a record", []situation{running, done}, equalMeaningIsSame),
		inEach("equal meanings under different policies are different requests, on a record", situations, otherPolicyMismatches),
		[]rule{
			{name: "two policies that alternate never run a done record anew (R21)", test: policiesAlternate},
			{name: "a record keeps its first fingerprint when the same request comes in other spelling", test: firstFingerprintStays},
		},
	)},
}

// refused checks that p is refused with the record's own digests, and that
// nothing is written.
func refused(s *subject, in situation, p semel.BeginParams) {
	s.Helper()
	first := in.make(s, resuming("key"))
	before := s.get("key")
	res := s.want(p, semel.BeginMismatch)
	assert.Equal(s, res.Record.Fingerprint, first.Fingerprint, "fingerprint")
	assert.Equal(s, res.Record.Credential, first.Credential, "credential")
	assert.Equal(s, res.Record.State, before.State, "state")
	s.unchanged(before)
}

func otherRequestMismatches(s *subject, in situation) {
	p := resuming("key")
	p.Fingerprint = semel.FingerprintOf([]byte("another request"))
	refused(s, in, p)
}

func otherCredentialMismatches(s *subject, in situation) {
	p := resuming("key")
	p.Credential = semel.Digest{1}
	refused(s, in, p)
}

func otherPolicyMismatches(s *subject, in situation) {
	p := resuming("key")
	p.Fingerprint.Raw = semel.Digest{1}
	p.Fingerprint.Policy = "another"
	refused(s, in, p)
}

func otherRequestClaimsExpired(s *subject, in situation) {
	in.make(s, params("key"))
	s.advance(retention + slack)
	p := params("key")
	p.Fingerprint = semel.FingerprintOf([]byte("another request"))
	p.Credential = semel.Digest{1}
	s.claim(p)
	rec := s.get("key")
	assert.Equal(s, rec.Fingerprint, p.Fingerprint, "fingerprint")
	assert.Equal(s, rec.Credential, p.Credential, "credential")
	s.want(params("key"), semel.BeginMismatch)
}

// repeated checks that p is taken for a repeat of the request of the record.
func repeated(s *subject, in situation, p semel.BeginParams) {
	s.Helper()
	in.make(s, params("key"))
	want := semel.BeginReplay
	if in.name == running.name {
		want = semel.BeginBusy
	}
	s.want(p, want)
}

func equalRawIsSame(s *subject, in situation) {
	p := params("key")
	p.Fingerprint.Meaning = semel.Digest{1}
	p.Fingerprint.Policy = "another"
	repeated(s, in, p)
}

func equalMeaningIsSame(s *subject, in situation) {
	p := params("key")
	p.Fingerprint.Raw = semel.Digest{1}
	repeated(s, in, p)
}

func policiesAlternate(s *subject) {
	older, newer := params("key"), params("key")
	older.Fingerprint = semel.Fingerprint{Raw: semel.Digest{1}, Meaning: semel.Digest{2}, Policy: "1"}
	newer.Fingerprint = semel.Fingerprint{Raw: semel.Digest{3}, Meaning: semel.Digest{2}, Policy: "2"}
	s.end(s.claim(older), toDone)
	before := s.get("key")
	for range 3 {
		newer.Token, older.Token = semel.NewToken(), semel.NewToken()
		res := s.want(newer, semel.BeginMismatch)
		assert.Equal(s, res.Record.Fingerprint.Policy, "1", "the policy to compute again under")
		s.want(older, semel.BeginReplay)
	}
	s.unchanged(before)
}

func firstFingerprintStays(s *subject) {
	first := s.claim(params("key"))
	s.end(first, toReleased)
	p := params("key")
	p.Fingerprint.Raw = semel.Digest{1}
	s.claim(p)
	rec := s.get("key")
	assert.Equal(s, rec.Fingerprint, first.Fingerprint, "fingerprint")
}
