package semelhttp

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"

	"github.com/semel-dev/semel"
)

// The statuses that are not kept (R1, R10). docs/http.md and the published
// rules have the same lists.
var (
	// releasedStatuses say by their meaning that nothing was done.
	releasedStatuses = []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests,
	}
	// passingStatuses are not the end where the reply says that a retry may
	// go otherwise.
	passingStatuses = []int{http.StatusConflict, http.StatusUnprocessableEntity, http.StatusLocked}
)

// statusClientClosedRequest is how some servers log a client that went away.
const statusClientClosedRequest = 499

// verdictOf says what the end of a handler means for the key, from what it
// declared and what it answered.
func (p *protected) verdictOf(said semel.Declared, r *recorder) semel.Verdict {
	verdict := semel.VerdictKeep
	switch {
	case said.Final || said.Commit && p.route.inTx():
	case said.NotApplied:
		return semel.VerdictNotApplied
	case !r.whole():
		return semel.VerdictUnknown
	default:
		verdict = p.verdictOfStatus(r.status)
		if slices.Contains(passingStatuses, r.status) && passing(r) {
			verdict = semel.VerdictUnknown
		}
	}
	if verdict == semel.VerdictKeep && !(r.whole() && r.canBeKept()) {
		return semel.VerdictKeepNoReply
	}
	return verdict
}

func (p *protected) verdictOfStatus(status int) semel.Verdict {
	switch {
	case slices.Contains(p.route.NotApplied, status), slices.Contains(releasedStatuses, status):
		return semel.VerdictNotApplied
	case status < 200, status >= 500, status == statusClientClosedRequest:
		return semel.VerdictUnknown
	}
	return semel.VerdictKeep
}

// expected is the outcome that a reply is sent with whose end is not known
// yet: a stream's.
func (p *protected) expected(status int) string {
	if p.verdictOfStatus(status) == semel.VerdictKeep {
		return outcomeExecuted
	}
	return outcomeUnknown
}

// passing reports whether a 409, 422 or 423 says that the same request may go
// otherwise later: by Retry-After, or because it is the answer of another
// Semel further in.
func passing(r *recorder) bool {
	if r.changed.Get("Retry-After") != "" {
		return true
	}
	switch r.changed.Get(headerOutcome) {
	case outcomeInProgress, outcomeUnknown:
		return true
	}
	media, _, err := mime.ParseMediaType(r.changed.Get("Content-Type"))
	if err != nil || media != mediaProblem {
		return false
	}
	var inner problemBody
	if json.Unmarshal(r.body, &inner) != nil {
		return false
	}
	_, ours := problemByCode[inner.Code]
	return ours && inner.Retry
}

// completion says how the handler ended.
func (x *exchange) completion(said semel.Declared) semel.Completion {
	r := &x.reply
	c := semel.Completion{Verdict: x.p.verdictOf(said, r), Reply: semel.Reply{Status: r.status}}
	c.Undo = r.status >= 400 && !said.Commit
	if c.Verdict == semel.VerdictKeep {
		c.Reply.Header, c.Reply.Body = savedHeader(r.changed), r.body
	}
	return c
}
