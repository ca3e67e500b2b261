package semelclient

import (
	"net/http"
)

// Outcome is what is known of an intent. The zero value is Unknown.
type Outcome int

// The outcomes.
const (
	// Unknown: it may have taken effect, or may yet. The intent stays stored;
	// never make a new one for the same thing.
	Unknown Outcome = iota
	// Applied: it took effect.
	Applied
	// NotApplied: it did not take effect and will not; the intent is closed. A
	// new intent is the caller's decision.
	NotApplied
)

// String returns "unknown", "applied" or "not applied".
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case NotApplied:
		return "not applied"
	case Unknown:
	}
	return "unknown"
}

// Reason says what an outcome rests on. Reasons are stable.
type Reason string

// The reasons.
const (
	// ReasonReply: the service's reply says it.
	ReasonReply Reason = "reply"
	// ReasonAsked: Config.AskFunc says it.
	ReasonAsked Reason = "asked"
	// ReasonGaveUp: the deadline or the attempts ran out, or the context ended.
	// NotApplied with it means that no attempt left, or each was refused.
	ReasonGaveUp Reason = "gave_up"
	// ReasonTooOld: the service may have forgotten the key, so that another try
	// could be a second effect.
	ReasonTooOld Reason = "too_old"
	// ReasonFinalError: the service keeps a 5xx as its reply to this key.
	ReasonFinalError Reason = "final_error"
	// ReasonReplyHidden: it is done, and the service does not show how it ended.
	ReasonReplyHidden Reason = "reply_hidden"
	// ReasonRefused: a refusal that does not tell whether an earlier attempt
	// took effect.
	ReasonRefused Reason = "refused"
	// ReasonKeyReused: the service knows the key with another request.
	ReasonKeyReused Reason = "key_reused"
	// ReasonOtherCaller: the service knows the key of another caller. If it is
	// this one's with a renewed credential, the operator of the service can tell.
	ReasonOtherCaller Reason = "other_caller"
	// ReasonRedirected: the service sends the caller to another place, where
	// the key means nothing.
	ReasonRedirected Reason = "redirected"
	// ReasonUnprotected: the service said that it did not look at the key, so
	// another try could be a second effect.
	ReasonUnprotected Reason = "unprotected"
	// ReasonHeld: another process or goroutine is at work on the intent.
	ReasonHeld Reason = "held"
	// ReasonStore: the store of intents could not be used; Err has the cause.
	ReasonStore Reason = "store"
)

// Result is how a call of Do ended.
type Result struct {
	Outcome Outcome
	Reason  Reason
	Intent  Intent

	// Status, Header and Body are those of the last reply that came, of
	// whatever outcome. Status is 0 if none did.
	Status int
	Header http.Header
	Body   []byte
	// Truncated says that the body was longer than Config.MaxReply.
	Truncated bool
	// Replayed says that the reply is a saved one: the work was done before.
	Replayed bool
	// Problem is the body read as problem details (RFC 9457), if it is that.
	Problem *Problem

	// Attempts is how many requests this call wrote to a connection.
	Attempts int
	// Err is what stood in the way: of the last attempt, of the store, or of
	// the deadline, which matches context.DeadlineExceeded. It may be set with
	// any outcome, and says nothing about it.
	Err error
}

// Settled reports whether the outcome is known.
func (r Result) Settled() bool { return r.Outcome != Unknown }

// Problem is an error answer in the form of RFC 9457, with the members that
// Semel adds.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
	// Code is the name to test for; docs/problems.md lists Semel's.
	Code string `json:"code"`
	// Retry says whether the same key may be sent again.
	Retry bool `json:"retry"`
	// OriginalStatus is what a reply that was not kept had.
	OriginalStatus int    `json:"originalStatus"`
	Reason         string `json:"reason"`
}

// OutcomeError is what the http.RoundTripper returns where it has no response to
// return. Its text names the key.
type OutcomeError struct{ Result Result }

// Error says what is known.
func (e *OutcomeError) Error() string {
	text := "semelclient: nobody knows yet whether the request with key " + e.Result.Intent.Key +
		" took effect: send it again with that key, never with another"
	if e.Result.Outcome == NotApplied {
		text = "semelclient: the request with key " + e.Result.Intent.Key + " did not take effect"
	}
	if e.Result.Err != nil {
		text += ": " + e.Result.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *OutcomeError) Unwrap() error { return e.Result.Err }
