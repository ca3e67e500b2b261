package check

// Level is how much a case matters.
type Level string

// The levels.
const (
	// Must is what keeps an effect from happening twice, or a caller from being given
	// the reply to somebody else or to another request, or what
	// draft-ietf-httpapi-idempotency-key-header asks with MUST.
	Must Level = "MUST"
	// Should is what the draft asks with SHOULD. It is a failure in strict runs.
	Should Level = "SHOULD"
	// Practice is what payment APIs do beyond the draft.
	Practice Level = "PRACTICE"
	// Info tells how the API behaves where both ways are sound.
	Info Level = "INFO"
)

// Status is what became of a case.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	// Fail is a broken MUST, or in a strict run a broken SHOULD.
	Fail Status = "fail"
	// Warn is a broken SHOULD or PRACTICE.
	Warn Status = "warn"
	// Told is the answer to a case of level INFO.
	Told Status = "info"
	// Skipped cases were not wanted, or lack something only the user can give.
	Skipped Status = "skipped"
	// SetupFailed cases got no good answer to a request that had to succeed
	// before anything could be tested.
	SetupFailed Status = "setup-failed"
	// Inconclusive cases ran, and what they saw can be read both ways.
	Inconclusive Status = "inconclusive"
)

// Evidence is what a finding rests on.
type Evidence string

// The kinds of evidence, the weakest first.
const (
	// Bytes: replies were compared, and say nothing of executions.
	Bytes Evidence = "bytes"
	// Identity: the reply holds something that differs between two executions
	// under two keys, as an id does.
	Identity Evidence = "identity"
	// Counted: the system under test was asked how many effects there are.
	Counted Evidence = "counted"
)

var strengths = map[Evidence]int{Bytes: 1, Identity: 2, Counted: 3}

// AtLeast reports whether e is as strong as other.
func (e Evidence) AtLeast(other Evidence) bool { return strengths[e] >= strengths[other] }
