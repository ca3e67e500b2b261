package semel

import "time"

// State is what a store keeps about a key. That a lease has lapsed is not a
// state: it is computed from the lease and the store's clock, and nothing is
// written when it happens (R16).
type State uint8

// The states of a record.
const (
	// StateAbsent is no record, or the tombstone of a raised generation.
	StateAbsent State = iota
	// StateRunning is a claim without a known end.
	StateRunning
	// StateDone is finished; the reply is kept, or known not to be.
	StateDone
	// StateReleased is known not applied (R1); the key may be claimed anew.
	StateReleased
	// StateUnknown is an attempt that ended without anybody knowing how.
	StateUnknown
)

// String returns the state's name as it appears in logs and reports.
func (s State) String() string {
	switch s {
	case StateAbsent:
		return "absent"
	case StateRunning:
		return "running"
	case StateDone:
		return "done"
	case StateReleased:
		return "released"
	case StateUnknown:
		return "unknown"
	}
	return "invalid"
}

// Digest is a SHA-256, or an HMAC-SHA-256. Zero is none.
type Digest [32]byte

// Fingerprint tells one request from another. Raw covers the bytes as sent,
// Meaning the request with spelling that does not matter taken out, under the
// rules named by Policy.
type Fingerprint struct {
	Raw     Digest
	Meaning Digest
	Policy  string
}

// Same reports whether two fingerprints are of one request: equal raw digests
// always, equal meanings only under one policy (R21).
func (f Fingerprint) Same(g Fingerprint) bool {
	return f.Raw == g.Raw || f.Policy == g.Policy && f.Meaning == g.Meaning
}

// problem says what is missing, or "". Two fingerprints without a meaning
// would be of one request, whatever the requests are.
func (f Fingerprint) problem() string {
	switch {
	case f.Raw == Digest{}:
		return "Raw is missing (semel.FingerprintOf makes a fingerprint of bytes)"
	case f.Meaning == Digest{}:
		return "Meaning is missing; it is Raw where no other spelling means the same"
	case f.Policy == "":
		return "Policy is missing: the name of the rules that gave Meaning"
	}
	return ""
}

// Reply is what is replayed. To the core it is opaque; semelhttp puts an HTTP
// status, end-to-end headers and the body bytes in it.
type Reply struct {
	Status int // of HTTP; zero where there is none
	Header Header
	Body   []byte
}

// Record is the stored row of one (scope, key), as one read saw it. All its
// times are on the store's clock and mean something only beside Now, the
// store's time at that read.
type Record struct {
	Scope string
	Key   string

	State      State
	Open       bool  // an earlier attempt has no known end (M2)
	Generation int64 // how often it was settled as SettleStartOver (M8)

	OperationID OperationID
	Token       Token // of the latest claim
	Attempt     int64 // of the latest claim; 1 is the first of this life
	Fingerprint Fingerprint
	Credential  Digest
	Trace       string // traceparent of the first attempt

	AllInTx      bool // of the latest attempt: see Call.AllInTx
	ReplyStarted bool // bytes went out before the end: never run again
	ReplyKept    bool // of a done record: Reply can be replayed
	Reply        Reply

	Created      time.Time // start of this life
	FirstStarted time.Time // from which ResumeWithin counts (R8)
	Claimed      time.Time // start of the latest attempt
	Renewed      time.Time // when LeaseEnd was set
	LeaseEnd     time.Time
	Finished     time.Time // zero while running
	Expires      time.Time // zero while running or unknown: those never expire
	Now          time.Time
}

func (r Record) withoutReply() Record {
	r.Reply = Reply{}
	return r
}

// sameLife reports whether two readings of a key are of one life of its record.
// Request and credential are then the same as well; they are compared because
// a clock that was set back can give two lives one start.
func (r *Record) sameLife(s *Record) bool { return r.Created.Equal(s.Created) && r.sameRequest(s) }

// sameRequest reports whether two readings of a key are of one operation, asked
// for by the same request of the same caller.
func (r *Record) sameRequest(s *Record) bool {
	return r.OperationID == s.OperationID && r.Fingerprint == s.Fingerprint && r.Credential == s.Credential
}

// Claim returns the claim of the record's latest attempt.
func (r *Record) Claim() Claim {
	return Claim{Scope: r.Scope, Key: r.Key, Token: r.Token, Attempt: r.Attempt}
}

// clockTolerance is how far a store's clock may go back without being taken
// for stepped: clocks are adjusted, and a cluster has several.
const clockTolerance = time.Second

// LeaseLeft is how long the latest claim still holds unrenewed; zero or less
// when it has lapsed. A lease that was renewed in the future has lapsed: the
// store's clock was set back, and an owner that is alive renews it soon, while
// a dead one would otherwise hold it for the size of the step (R24).
func (r *Record) LeaseLeft() time.Duration {
	if r.Renewed.After(r.Now.Add(clockTolerance)) {
		return 0
	}
	return r.LeaseEnd.Sub(r.Now)
}

// AttemptAge is how long ago the latest attempt was claimed.
func (r *Record) AttemptAge() time.Duration { return r.Now.Sub(r.Claimed) }

// Expired reports whether retention has ended. An expired record counts as
// absent, swept or not.
func (r *Record) Expired() bool {
	return (r.State == StateDone || r.State == StateReleased) && !r.Expires.After(r.Now)
}
