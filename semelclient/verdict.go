package semelclient

import (
	"net/http"
	"time"
)

// act is what comes after an attempt.
type act int

const (
	actStop    act = iota
	actAgain       // send it again
	actPoll        // the service works on it: ask again, at no cost to the budget
	actRenew       // the credential is refused: renew it
	actFollow      // the same request to another address of the same service
	actConfirm     // a refusal that does not say whose it is: look once more
)

// verdict is what one attempt says, read alone.
type verdict struct {
	act     act
	outcome Outcome
	reason  Reason
	// open: the attempt may have taken effect, or may yet.
	open bool
	// certain: outcome holds for the intent, whatever became of earlier
	// attempts. Without it "not applied" is said of this attempt only.
	certain   bool
	throttled bool          // the service asks for less
	wait      time.Duration // what it asks for
}

// judgeReply reads a whole reply. It is the table of docs/client.md.
func judgeReply(r *reply) verdict {
	v := judgeSemel(r)
	v.wait = retryAfter(r.header)
	if r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable {
		v.throttled = true
	}
	return v
}

// judgeSemel goes by what a Semel at the other end says, and by the status where
// there is none.
func judgeSemel(r *reply) verdict {
	switch r.says() {
	case saysExecuted, saysReplayed:
		if r.code() == codeReplyNotKept {
			return judgeHidden(r) // the first request, whose reply had no room
		}
		return judgeKept(r.status)
	case saysReplyNotKept:
		return judgeHidden(r)
	case saysInProgress:
		return verdict{act: actPoll, open: true, reason: ReasonGaveUp}
	case saysUnknown:
		return verdict{act: actAgain, open: true, reason: ReasonGaveUp}
	case saysKeyReused:
		return judgeReused(r)
	case saysReleased:
		return judgeReleased(r)
	case saysUnprotected:
		return judgeUnprotected(r.status)
	}
	if r.replayed() {
		return judgeKept(r.status)
	}
	return judgeStatus(r)
}

// judgeKept reads the reply that is kept for the key: it is final, whatever it
// is.
func judgeKept(status int) verdict {
	switch {
	case isDone(status), status >= 300 && status < 400:
		return verdict{outcome: Applied, reason: ReasonReply, certain: true}
	case status >= 400 && status < 500:
		return verdict{outcome: NotApplied, reason: ReasonReply, certain: true}
	}
	return verdict{reason: ReasonFinalError, open: true}
}

func isDone(status int) bool { return status >= 200 && status < 300 }

// judgeHidden reads an answer that the request is done and its reply cannot be
// shown.
func judgeHidden(r *reply) verdict {
	if r.problem != nil && r.problem.OriginalStatus != 0 {
		return judgeKept(r.problem.OriginalStatus)
	}
	return verdict{reason: ReasonReplyHidden, open: true}
}

// judgeReused reads a refusal of the key: this attempt did not run. Whether an
// earlier one of this intent is behind it, course decides.
func judgeReused(r *reply) verdict {
	v := verdict{outcome: NotApplied, reason: ReasonKeyReused}
	if r.code() == codeOtherCaller {
		v.reason = ReasonOtherCaller
	}
	if r.problem != nil && r.problem.Reason == codeUnknownPolicy {
		return verdict{reason: ReasonKeyReused, open: true}
	}
	return v
}

// judgeReleased reads an answer to an attempt that is known to have had no
// effect.
func judgeReleased(r *reply) verdict {
	switch {
	case r.status == http.StatusUnauthorized:
		return verdict{act: actRenew, outcome: NotApplied, reason: ReasonRefused}
	case r.again(), r.code() == "" && (isTransient(r.status) || r.status >= 500):
		return verdict{act: actAgain, outcome: NotApplied, reason: ReasonGaveUp}
	}
	return verdict{outcome: NotApplied, reason: ReasonRefused}
}

// judgeUnprotected reads an answer of a service that did not look at the key: it
// cannot be asked again.
func judgeUnprotected(status int) verdict {
	switch {
	case isDone(status), status == http.StatusSeeOther:
		return verdict{outcome: Applied, reason: ReasonReply, certain: true}
	case status >= 400 && status < 500:
		return verdict{outcome: NotApplied, reason: ReasonRefused}
	}
	return verdict{reason: ReasonUnprotected, open: true}
}

// isTransient reports statuses that say by their meaning that nothing was done
// and that it may go otherwise soon.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusServiceUnavailable:
		return true
	}
	return false
}

// judgeStatus reads a reply of a service that says nothing of keys.
func judgeStatus(r *reply) verdict {
	switch s := r.status; {
	case isDone(s), s == http.StatusSeeOther:
		return verdict{outcome: Applied, reason: ReasonReply, certain: true}
	case s == http.StatusTemporaryRedirect, s == http.StatusPermanentRedirect:
		return verdict{act: actFollow, outcome: NotApplied, reason: ReasonRedirected}
	case s < 400:
		return verdict{reason: ReasonRedirected, open: true} // a login page, or done: it does not say
	case s >= 500, s == statusClientClosedRequest:
		return judgeServerError(r)
	case s == http.StatusUnauthorized:
		return verdict{act: actRenew, outcome: NotApplied, reason: ReasonRefused}
	case isTransient(s):
		if r.never() {
			break
		}
		return verdict{act: actAgain, outcome: NotApplied, reason: ReasonGaveUp}
	case isPassing(r):
		return verdict{act: actPoll, open: true, reason: ReasonGaveUp}
	}
	return verdict{act: actConfirm, outcome: NotApplied, reason: ReasonRefused}
}

// statusClientClosedRequest is how some servers log a client that went away.
const statusClientClosedRequest = 499

// judgeServerError reads a 5xx that nobody says is kept: the work may have been
// done, and another try with the key tells.
func judgeServerError(r *reply) verdict {
	v := verdict{act: actAgain, open: true, reason: ReasonGaveUp}
	if r.never() || r.status == http.StatusNotImplemented || r.status == http.StatusHTTPVersionNotSupported {
		v.act, v.reason = actStop, ReasonRefused
	}
	return v
}

// isPassing reports a 409, 422 or 423 that says to come back: an attempt is
// running. One that does not is an answer of the service's own.
func isPassing(r *reply) bool {
	switch r.status {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusLocked:
		return !r.never() && (r.again() || field(r.header, "Retry-After") != "")
	}
	return false
}
