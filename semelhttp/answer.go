package semelhttp

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/semel-dev/semel"
)

// refuse answers with a problem.
func (x *exchange) refuse(p problem) {
	x.problem = p.code
	x.status, x.outcome = x.p.mw.writeProblem(x.w, p)
}

// answer turns what the guard says into a reply.
func (x *exchange) answer(res semel.Result, err error) {
	late := errors.Is(err, semel.ErrStillRunning)
	x.cause = err
	switch {
	case late && x.reply.detach():
		x.abort(res, nil)
	case !late && x.cut(res, err):
		x.abort(res, x.panicked)
	case err != nil:
		x.refuse(x.fault(res, err))
	case res.Ran && x.reply.lost != nil:
		x.withoutReply(res)
	case res.Ran:
		x.sendReply(outcomeOf(res.Outcome))
	case res.Outcome == semel.OutcomeReplayed:
		x.replay(res.Reply)
	default:
		x.refuse(refusal(res))
	}
}

// cut reports whether the client must see a broken connection: it has seen a
// part of a reply that is not the end of the operation, or the handler wanted
// it so.
func (x *exchange) cut(res semel.Result, err error) bool {
	switch {
	case x.panicked != nil:
		return true
	case x.reply.started:
		return err != nil || !res.Ran
	}
	return errors.Is(err, semel.ErrGoexit)
}

// abort breaks the connection, by the handler's own panic if that is why. A
// layer outside may answer such a one, so that its status is not known here.
func (x *exchange) abort(res semel.Result, panicked any) {
	if res.Ran {
		x.outcome = outcomeOf(res.Outcome)
	}
	if panicked == nil {
		panicked = http.ErrAbortHandler // net/http's way to cut a reply
	}
	if panicked == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so.
		x.status = x.reply.status
	}
	panic(panicked) //nolint:forbidigo // see above.
}

// withoutReply answers for a reply that there was no room for: as repeats are
// answered if the operation is done, else by a broken connection.
func (x *exchange) withoutReply(res semel.Result) {
	x.cause = x.reply.lost
	if res.Outcome != semel.OutcomeExecuted {
		x.abort(res, nil)
	}
	x.refuse(problem{code: ProblemReplyNotKept, outcome: outcomeExecuted, originalStatus: x.reply.status})
}

// sendReply sends the handler's own reply.
func (x *exchange) sendReply(outcome string) {
	x.status, x.outcome = x.reply.status, outcome
	if !x.reply.started {
		if err := x.reply.send(outcome); err != nil {
			x.cause = err
			return
		}
	}
	x.reply.sendTrailers()
}

// replay sends a saved reply.
func (x *exchange) replay(saved semel.Reply) {
	if !acceptable(x.request.Header, saved.Header) {
		x.refuse(problem{code: ProblemReplyNotAcceptable})
		return
	}
	x.status, x.outcome = saved.Status, outcomeReplayed
	if x.status < 200 { // saved without one, by an operator
		x.status = http.StatusOK
	}
	h := x.w.Header()
	for name, values := range saved.Header {
		h[name] = slices.Clip(values) // shared with the store
	}
	h.Set(headerReplayed, "true")
	h.Set(headerOutcome, outcomeReplayed)
	if bodyAllowed(x.status) {
		h.Set("Content-Length", strconv.Itoa(len(saved.Body)))
	}
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // nor had the first reply one: net/http must not guess
	}
	x.w.WriteHeader(x.status)
	if len(saved.Body) > 0 {
		x.w.Write(saved.Body)
	}
}

func outcomeOf(o semel.Outcome) string {
	switch o {
	case semel.OutcomeExecuted:
		return outcomeExecuted
	case semel.OutcomeReleased:
		return outcomeReleased
	}
	return outcomeUnknown
}

// fault is the answer to an error of the guard. A store may say of any of its
// calls that the database refused it; a business transaction was refused only
// where there was one.
func (x *exchange) fault(res semel.Result, err error) problem {
	p := problem{code: ProblemStoreUnavailable}
	switch {
	case errors.Is(err, semel.ErrStillRunning):
		return problem{code: ProblemStillRunning}
	case errors.Is(err, semel.ErrReplayRefused):
		return problem{code: ProblemReplayRefused}
	case res.Ran && x.p.route.inTx() && errors.Is(err, semel.ErrCommitRefused):
		p.code = ProblemCommitRefused
	}
	if res.Outcome != 0 { // the work has run: this call's, also where it was replaced
		p.outcome = outcomeOf(res.Outcome)
	}
	return p
}

// refusal is the answer to a request that did not run and has no reply.
func refusal(res semel.Result) problem {
	switch res.Outcome {
	case semel.OutcomeInProgress:
		return problem{code: ProblemInProgress, wait: res.RetryAfter}
	case semel.OutcomeReplyNotKept:
		return problem{code: ProblemReplyNotKept, originalStatus: res.Reply.Status}
	case semel.OutcomeOtherCaller:
		return problem{code: ProblemOtherCaller}
	case semel.OutcomeReleased: // the claim was settled before the work began
		return problem{code: ProblemStoreUnavailable}
	case semel.OutcomeKeyReused:
		if res.UnknownPolicy {
			return problem{code: ProblemKeyReused, reason: "unknown-policy"}
		}
		return problem{code: ProblemKeyReused, detail: "The key came with another request before. What is meant to be a new request needs a new key."}
	}
	return problem{code: ProblemOutcomeUnknown}
}
