package semelclient

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The values of Semel-Outcome; docs/problems.md has what each says.
const (
	saysExecuted     = "executed"
	saysReplayed     = "replayed"
	saysInProgress   = "in-progress"
	saysKeyReused    = "key-reused"
	saysUnknown      = "unknown"
	saysReleased     = "released"
	saysReplyNotKept = "reply-not-kept"
	saysUnprotected  = "unprotected"
)

// The codes of problems that mean more than their outcome does.
const (
	codeOtherCaller  = "other-caller"
	codeReplyNotKept = "reply-not-kept"
	// codeUnknownPolicy is a reason of key-reused: the two requests could not
	// be compared.
	codeUnknownPolicy = "unknown-policy"
)

// reply is a whole answer to one attempt.
type reply struct {
	response  *http.Response // its body is read and closed
	status    int
	header    http.Header
	body      []byte
	truncated bool
	problem   *Problem
}

func newReply(resp *http.Response, body []byte, truncated bool) *reply {
	return &reply{
		response: resp, status: resp.StatusCode, header: resp.Header, body: body, truncated: truncated,
		problem: readProblem(resp.Header, body),
	}
}

// says is what Semel at the other end says became of this attempt, if there is
// one: its header, and else the code of its problem.
func (r *reply) says() string {
	switch said := field(r.header, "Semel-Outcome"); said {
	case saysExecuted, saysReplayed, saysInProgress, saysKeyReused, saysUnknown, saysReleased, saysReplyNotKept, saysUnprotected:
		return said
	}
	return r.codeSays()
}

// replayed reports whether the reply is a saved one, by the header that the
// payment APIs have in common.
func (r *reply) replayed() bool {
	return equal(field(r.header, "Idempotent-Replayed"), "true") || r.says() == saysReplayed
}

func (r *reply) code() string {
	if r.problem == nil {
		return ""
	}
	return r.problem.Code
}

// again reports whether the reply says that the same key may be sent again, and
// never whether it says that it may not: a Semel by its problem, Stripe and Adyen
// by a header each.
func (r *reply) again() bool {
	if r.says() != "" && r.code() != "" {
		return r.problem.Retry
	}
	return vendorSays(r.header, "true")
}

func (r *reply) never() bool {
	if r.says() != "" && r.code() != "" {
		return !r.problem.Retry
	}
	return vendorSays(r.header, "false")
}

func vendorSays(h http.Header, value string) bool {
	return equal(field(h, "Stripe-Should-Retry"), value) || equal(field(h, "Transient-Error"), value)
}

// longest stands for a Retry-After that no duration can hold.
const longest = time.Duration(1<<63 - 1)

// retryAfter returns what Retry-After asks for, in either form (RFC 9110 section
// 10.2.3), and 0 if it asks for nothing or cannot be read. A date is measured
// against the reply's own Date: this machine's clock does not matter.
func retryAfter(h http.Header) time.Duration {
	values := h["Retry-After"]
	if len(values) != 1 {
		return 0
	}
	value := strings.Trim(values[0], " \t")
	if seconds, ok := deltaSeconds(value); ok {
		return seconds
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(field(h, "Date"))
	if err != nil {
		return 0
	}
	return max(until.Sub(from), 0)
}

// deltaSeconds reads a number of seconds: digits and nothing else.
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > int64(longest/time.Second) {
		return longest, true
	}
	return time.Duration(n) * time.Second, true
}
