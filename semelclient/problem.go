package semelclient

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// mediaProblem is problem details (RFC 9457).
const mediaProblem = "application/problem+json"

// saysOfCode is what each of Semel's own problems says became of the attempt,
// where the header that says it has got lost on the way: a gateway may drop it, and
// a browser shows it only if told to. A code that is answered with more than one
// outcome stands for the one that claims least; docs/problems.md has the table.
var saysOfCode = map[string]string{
	"key-missing":          saysReleased,
	"key-invalid":          saysReleased,
	"key-reused":           saysKeyReused,
	"in-progress":          saysInProgress,
	"outcome-unknown":      saysUnknown,
	codeReplyNotKept:       saysReplyNotKept,
	"reply-not-acceptable": saysReplyNotKept,
	"replay-refused":       saysReplyNotKept,
	codeOtherCaller:        saysKeyReused,
	"scope-missing":        saysReleased,
	"token-invalid":        saysReleased,
	"auth-unavailable":     saysUnknown,
	"body-too-large":       saysReleased,
	"body-timeout":         saysReleased,
	"body-incomplete":      saysReleased,
	"upgrade-refused":      saysReleased,
	"store-unavailable":    saysUnknown,
	"overloaded":           saysUnknown,
	"still-running":        saysUnknown,
	"commit-refused":       saysUnknown,
	"step-unsettled":       saysUnknown,
	"upstream-unknown":     saysUnknown,
}

// codeSays is what the code of the problem says, or "". A 5xx that says that
// nothing was done is not believed: Semel's do not say it by their code.
func (r *reply) codeSays() string {
	says := saysOfCode[r.code()]
	switch {
	case r.status < 400, r.status >= 500 && (says == saysReleased || says == saysKeyReused):
		return ""
	}
	return says
}

// readProblem returns a body as problem details, or nil if it is none: an object
// in JSON, of that media type whatever its parameters. A member counts if it has
// its exact name and its type, and is ignored otherwise (RFC 9457 section 3.1).
func readProblem(header http.Header, body []byte) *Problem {
	media, _, _ := strings.Cut(field(header, "Content-Type"), ";")
	if !equal(strings.Trim(media, " \t"), mediaProblem) {
		return nil
	}
	var members map[string]json.RawMessage
	// A browser takes the mark off as well.
	if json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &members) != nil || members == nil {
		return nil
	}
	return &Problem{
		Type: text(members["type"]), Title: text(members["title"]), Status: statusOf(members["status"]),
		Detail: text(members["detail"]), Instance: text(members["instance"]),
		Code: text(members["code"]), Retry: string(members["retry"]) == "true",
		OriginalStatus: statusOf(members["originalStatus"]), Reason: text(members["reason"]),
	}
}

// text is a member that is a string, or "".
func text(member json.RawMessage) string {
	var s string
	if json.Unmarshal(member, &s) != nil {
		return ""
	}
	return s
}

// statusOf is a member that is the status of a whole reply, or 0. The number may
// be written in any way.
func statusOf(member json.RawMessage) int {
	n, err := strconv.ParseFloat(string(member), 64)
	if err != nil || n != math.Trunc(n) || n < 200 || n > 599 {
		return 0
	}
	return int(n)
}

// field is a header as a browser shows it: lines of one name are one.
func field(h http.Header, name string) string {
	lines := make([]string, 0, 1)
	for _, line := range h.Values(name) {
		lines = append(lines, strings.Trim(line, " \t"))
	}
	return strings.Join(lines, ", ")
}

// equal compares letters of ASCII in either case, and nothing that looks like
// them, which would be longer.
func equal(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }
