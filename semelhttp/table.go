package semelhttp

import (
	"net/http"
	"time"
)

// ProblemCode names a kind of error answer: the member code of the problem, and
// the end of its type. Codes are stable; texts are not.
type ProblemCode string

// The codes, in the order of docs/problems.md, which says of each what it means,
// its status, and what the client should do.
const (
	ProblemKeyMissing         ProblemCode = "key-missing"
	ProblemKeyInvalid         ProblemCode = "key-invalid"
	ProblemKeyReused          ProblemCode = "key-reused"
	ProblemInProgress         ProblemCode = "in-progress"
	ProblemOutcomeUnknown     ProblemCode = "outcome-unknown"
	ProblemReplyNotKept       ProblemCode = "reply-not-kept"
	ProblemReplyNotAcceptable ProblemCode = "reply-not-acceptable"
	ProblemReplayRefused      ProblemCode = "replay-refused"
	ProblemOtherCaller        ProblemCode = "other-caller"
	ProblemScopeMissing       ProblemCode = "scope-missing"
	ProblemTokenInvalid       ProblemCode = "token-invalid"
	ProblemAuthUnavailable    ProblemCode = "auth-unavailable"
	ProblemBodyTooLarge       ProblemCode = "body-too-large"
	ProblemBodyTimeout        ProblemCode = "body-timeout"
	ProblemBodyIncomplete     ProblemCode = "body-incomplete"
	ProblemUpgradeRefused     ProblemCode = "upgrade-refused"
	ProblemStoreUnavailable   ProblemCode = "store-unavailable"
	ProblemOverloaded         ProblemCode = "overloaded"
	ProblemStillRunning       ProblemCode = "still-running"
	ProblemCommitRefused      ProblemCode = "commit-refused"
	ProblemStepUnsettled      ProblemCode = "step-unsettled"
	ProblemUpstreamUnknown    ProblemCode = "upstream-unknown"
)

// The values of Semel-Outcome.
const (
	outcomeExecuted     = "executed"
	outcomeReplayed     = "replayed"
	outcomeInProgress   = "in-progress"
	outcomeKeyReused    = "key-reused"
	outcomeUnknown      = "unknown"
	outcomeReleased     = "released"
	outcomeReplyNotKept = "reply-not-kept"
	outcomeUnprotected  = "unprotected"
)

// problemType is a row of the one table of error answers. docs/problems.md is
// generated from it.
type problemType struct {
	code    ProblemCode
	status  int
	outcome string        // Semel-Outcome
	or      string        // the other one, where what had happened decides
	retry   bool          // may the same key be sent again?
	wait    time.Duration // Retry-After, where the answer gives none of its own
	from    string        // who answers it, if not the middleware and the proxy alike
	title   string
	meaning string
	advice  string // what the client should do
}

var problemTypes = []problemType{
	{
		code: ProblemKeyMissing, status: http.StatusBadRequest, outcome: outcomeReleased,
		title:   "A key is required",
		meaning: "The route needs an `Idempotency-Key` header and the request has none. Nothing ran.",
		advice:  "Make one key for each thing the user wants done, store it before the first try, and send it with every try.",
	},
	{
		code: ProblemKeyInvalid, status: http.StatusBadRequest, outcome: outcomeReleased,
		title:   "The key cannot be read",
		meaning: "The key is empty, too long, sent more than once, or has characters that a key cannot have. A key that cannot be read never counts as no key. Nothing ran.",
		advice:  "Send a UUID, bare or in double quotes. `detail` says what is wrong and where.",
	},
	{
		code: ProblemKeyReused, status: http.StatusUnprocessableEntity, outcome: outcomeKeyReused,
		title:   "The key belongs to another request",
		meaning: "The key was used before with another method, target, route, content or named header. This request did not run; the first one is not affected. With `reason` `unknown-policy` the two requests could not be compared, because the rules under which the first was saved are not loaded any more. Which part differs is not said: of the first request only digests are kept.",
		advice:  "Send the first request again exactly as it was, or use a new key if this is something new.",
	},
	{
		code: ProblemInProgress, status: http.StatusConflict, outcome: outcomeInProgress, retry: true, wait: time.Second,
		title:   "The first request has not ended yet",
		meaning: "Another request with this key is being worked on, or its process died and its lease has not run out: until then nobody can tell the two apart. This one did not run, or was replaced by that one while it ran.",
		advice:  "Send the same request with the same key after `Retry-After`: it gets the reply once there is one. If the first died, it runs or is answered `outcome-unknown`.",
	},
	{
		code: ProblemOutcomeUnknown, status: http.StatusConflict, outcome: outcomeUnknown, retry: true, wait: 5 * time.Minute,
		title:   "Nobody knows yet whether the request took effect",
		meaning: "Another attempt with this key ended without its end being known, and may not be run again: it waits for somebody to settle what happened. This request did not run, or was replaced by that attempt while it ran.",
		advice:  "Never use a new key: that could do it twice. Ask for the state in another way, tell the user that it is being looked into, and ask again with the same key after `Retry-After`.",
	},
	{
		code: ProblemReplyNotKept, status: http.StatusConflict, outcome: outcomeReplyNotKept, or: outcomeExecuted,
		title:   "The request is done, its reply was not kept",
		meaning: "The first request is done. Its reply was streamed, too large or had trailers, or was erased, so it cannot be shown again. With `Semel-Outcome: executed` this was the first request, and the service had no room for so large a reply. `originalStatus` is the status it had, if that is known.",
		advice:  "Take the status as the result, and read the rest with a GET.",
	},
	{
		code: ProblemReplyNotAcceptable, status: http.StatusNotAcceptable, outcome: outcomeReplyNotKept, retry: true,
		title:   "The saved reply is in an encoding this request does not accept",
		meaning: "The first request is done, and its reply was saved with a content encoding that the `Accept-Encoding` of this one excludes.",
		advice:  "Send the same request with the `Accept-Encoding` of the first try.",
	},
	{
		code: ProblemReplayRefused, status: http.StatusForbidden, outcome: outcomeReplyNotKept,
		title:   "The saved reply may not be shown to this caller",
		meaning: "The first request is done. The service refuses to show its reply to this caller now, for instance because a right was withdrawn.",
		advice:  "Read the result with an account that may see it.",
	},
	{
		code: ProblemOtherCaller, status: http.StatusForbidden, outcome: outcomeKeyReused,
		title:   "The key belongs to another caller",
		meaning: "The key was first used with another credential. This request did not run, and the reply is not shown.",
		advice:  "If the credential was renewed since, ask the operator of the service. Never use a new key for the same thing.",
	},
	{
		code: ProblemScopeMissing, status: http.StatusForbidden, outcome: outcomeReleased,
		title:   "It cannot be told whose key this is",
		meaning: "The request does not say, in the way the service expects, who sends it, or what the service makes of it is too long for a scope: then `detail` has the length and the limit. Nothing ran.",
		advice:  "Send the credentials that the service asks for, and the same key.",
	},
	{
		code: ProblemTokenInvalid, status: http.StatusUnauthorized, outcome: outcomeReleased, retry: true, from: "proxy",
		title:   "The token is not valid",
		meaning: "The bearer token is missing, expired or not valid; `WWW-Authenticate` says which. Nothing ran.",
		advice:  "Get a new token and send the same request with the same key.",
	},
	{
		code: ProblemAuthUnavailable, status: http.StatusServiceUnavailable, outcome: outcomeReleased, retry: true, wait: 5 * time.Second, from: "proxy",
		title:   "The authentication service cannot be asked",
		meaning: "Who sends the request could not be found out. Nothing ran.",
		advice:  "Send the same request with the same key after `Retry-After`.",
	},
	{
		code: ProblemBodyTooLarge, status: http.StatusRequestEntityTooLarge, outcome: outcomeReleased,
		title:   "The body is too large for a request with a key",
		meaning: "The body is larger than `maxRequestBody` of the published rules, or than a limit in front of it; `detail` has the limit. Nothing ran.",
		advice:  "Send less, or upload the data first and refer to it.",
	},
	{
		code: ProblemBodyTimeout, status: http.StatusRequestTimeout, outcome: outcomeReleased, retry: true,
		title:   "The body took too long to arrive",
		meaning: "The whole body has to arrive before anything runs, and it did not in time. Nothing ran.",
		advice:  "Send the same request with the same key over a better connection.",
	},
	{
		code: ProblemBodyIncomplete, status: http.StatusBadRequest, outcome: outcomeReleased, retry: true,
		title:   "The body did not arrive whole",
		meaning: "The connection broke, the body was badly framed, or a layer of the service had read it before Semel could. Nothing ran.",
		advice:  "Send the same request with the same key.",
	},
	{
		code: ProblemUpgradeRefused, status: http.StatusBadRequest, outcome: outcomeReleased,
		title:   "A request with a key cannot change the protocol",
		meaning: "The request asks for an upgrade, such as a websocket, whose reply could never be replayed. Nothing ran.",
		advice:  "Leave out either the key or the upgrade.",
	},
	{
		code: ProblemStoreUnavailable, status: http.StatusServiceUnavailable, outcome: outcomeReleased, or: outcomeUnknown, retry: true, wait: 5 * time.Second,
		title:   "The record of the key cannot be read or written",
		meaning: "The store does not answer. With `Semel-Outcome: released` nothing ran; with `unknown` the request ran and how it ended could not be saved.",
		advice:  "Send the same request with the same key after `Retry-After`.",
	},
	{
		code: ProblemOverloaded, status: http.StatusServiceUnavailable, outcome: outcomeReleased, retry: true, wait: time.Second,
		title:   "Too many bytes are in flight",
		meaning: "The memory set apart for bodies is in use. Nothing ran.",
		advice:  "Send the same request with the same key after `Retry-After`.",
	},
	{
		code: ProblemStillRunning, status: http.StatusServiceUnavailable, outcome: outcomeUnknown, retry: true, wait: 5 * time.Second,
		title:   "The request is past its deadline and still running",
		meaning: "The work has not returned in time and has not been given up: its end will be saved when it returns.",
		advice:  "Never use a new key. Send the same request with the same key after `Retry-After`: it gets the reply once there is one, and is answered `in-progress` until then.",
	},
	{
		code: ProblemCommitRefused, status: http.StatusServiceUnavailable, outcome: outcomeUnknown, or: outcomeReleased, retry: true, wait: time.Second,
		title:   "The database refused the transaction",
		meaning: "The work ran and its transaction was refused, for instance because another one got in its way. Nothing in the database took effect. With `Semel-Outcome: released` that is all there was; with `unknown` the work may have called something outside.",
		advice:  "Send the same request with the same key after `Retry-After`: it runs again where the service resumes, or the key is released, and is answered `outcome-unknown` where not.",
	},
	{
		code: ProblemStepUnsettled, status: http.StatusServiceUnavailable, outcome: outcomeUnknown, retry: true, wait: 5 * time.Second, from: "steps",
		title:   "A step of an earlier attempt is not settled yet",
		meaning: "An earlier attempt had started a step, and it is too early to tell whether it took effect. The step did not run again.",
		advice:  "Send the same request with the same key after `Retry-After`.",
	},
	{
		code: ProblemUpstreamUnknown, status: http.StatusBadGateway, outcome: outcomeUnknown, retry: true, wait: 5 * time.Second, from: "proxy",
		title:   "The service gave no whole reply",
		meaning: "The request was sent on, and no whole reply came back: it may have taken effect.",
		advice:  "Never use a new key. Send the same request with the same key after `Retry-After`: it runs again where the service resumes, and is answered `outcome-unknown` where not.",
	},
}

var problemByCode = func() map[ProblemCode]*problemType {
	m := make(map[ProblemCode]*problemType, len(problemTypes))
	for i := range problemTypes {
		m[problemTypes[i].code] = &problemTypes[i]
	}
	return m
}()
