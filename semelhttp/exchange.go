package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/idempotencykey"
)

// exchange is one request on its way through the middleware. It is one
// allocation with all it needs, and is not used again: a handler that runs
// past its deadline still holds it.
type exchange struct {
	p       *protected
	w       http.ResponseWriter
	request *http.Request
	began   time.Time
	key     string
	scope   string
	body    requestBody
	reply   recorder

	// users are the goroutines that still need the buffers: the one that
	// answers, and the handler's.
	users    atomic.Int32
	entered  bool // the handler's has begun
	panicked any  // what the handler panicked with

	// What the log line says, and the observer is told.
	record   semel.Record
	takeover bool
	outcome  string
	problem  ProblemCode // of an answer of our own, or of the one that was spared
	status   int
	cause    error
}

func newExchange(p *protected, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{p: p, w: w, request: r, began: time.Now()}
	x.users.Store(1)
	return x
}

// serve answers the request: key, scope and body come first, then the claim.
func (x *exchange) serve() {
	defer x.end()
	defer x.drop()
	if refusal := x.admit(); refusal != nil {
		x.refuse(*refusal)
		return
	}
	x.reply.init(x.p, x.w)
	x.outcome = outcomeUnknown // for a panic that is not the handler's, and passes through here
	res, err := x.run()
	if x.failsOpen(err) {
		x.runUnprotected(err)
		return
	}
	x.record, x.takeover = res.Record, res.Takeover
	x.answer(res, err)
	if err == nil {
		x.reply.recycle()
	}
}

// run asks the guard. The handler's share of the buffers is given back here
// if it is known never to begin; after the deadline it may still do so.
func (x *exchange) run() (semel.Result, error) {
	x.users.Add(1)
	late := false
	defer func() {
		if !late && !x.entered {
			x.drop()
		}
	}()
	res, err := x.p.mw.guard.Run(x.request.Context(), x.call(), x.work)
	late = errors.Is(err, semel.ErrStillRunning)
	return res, err
}

// admit checks what can be checked before anything is claimed.
func (x *exchange) admit() *problem {
	if refusal := x.readKey(); refusal != nil {
		return refusal
	}
	if upgrades(x.request) {
		return &problem{code: ProblemUpgradeRefused}
	}
	if refusal := x.readScope(); refusal != nil {
		return refusal
	}
	return x.readBody()
}

func (x *exchange) readKey() *problem {
	cfg := &x.p.mw.cfg
	key, err := idempotencykey.Parse(x.request.Header[cfg.KeyHeader], cfg.StrictKey)
	switch {
	case errors.Is(err, idempotencykey.ErrMissing):
		return &problem{code: ProblemKeyMissing, detail: "The request has no " + cfg.KeyHeader + " header."}
	case err != nil:
		return &problem{code: ProblemKeyInvalid, detail: strings.TrimPrefix(err.Error(), "semel: ")}
	}
	x.key = key
	return nil
}

func (x *exchange) readScope() *problem {
	scope, err := x.p.mw.scope(x.request)
	refusal := problem{code: ProblemScopeMissing}
	switch {
	case err != nil:
		x.cause = err
	case scope == "":
		x.cause = semel.NewError(semel.CodeScopeInvalid, nil, "the scope is empty")
	case len(scope) > semel.MaxScopeLength:
		size := fmt.Sprintf("has %d bytes; the most is %d", len(scope), semel.MaxScopeLength)
		x.cause = semel.NewError(semel.CodeScopeInvalid, nil, "the scope %s", size)
		refusal.detail = "The scope of the request " + size + "."
	default:
		x.scope = scope
		return nil
	}
	return &refusal
}

// call describes the request to the guard.
func (x *exchange) call() semel.Call {
	p, sent := x.p, x.sent()
	c := semel.Call{
		Scope:       x.scope,
		Key:         x.key,
		Fingerprint: p.prints.Of(sent),
		Trace:       traceparent(x.request),
		Route:       p.route.Path,
		Mode:        p.route.Mode,
		AllInTx:     p.route.AllInTx,
	}
	if len(p.mw.cfg.OlderFingerprints) > 0 {
		c.Refingerprint = func(policy string) (semel.Fingerprint, bool) { return p.prints.Refingerprint(sent, policy) }
	}
	if p.mw.cfg.Credential != nil {
		c.Credential = p.mw.cfg.Credential(x.request)
	}
	if p.route.BeforeReplay != nil {
		c.BeforeReplay = func(rec semel.Record) error { return p.route.BeforeReplay(x.request, rec) }
	}
	return c
}

// sent is what the fingerprint is made of.
func (x *exchange) sent() fingerprint.Request {
	r := x.request
	target := r.RequestURI
	if target == "" { // a request made by hand
		target = r.URL.RequestURI()
	}
	return fingerprint.Request{
		Method: r.Method,
		Target: target,
		Route:  x.p.route.Name,
		Host:   r.Host,
		Header: r.Header,
		Body:   x.body.data,
	}
}

// work runs the handler, on the goroutine and under the context that the guard
// gives it.
func (x *exchange) work(ctx context.Context) semel.Completion {
	x.entered = true
	defer x.drop()
	r := x.handedOn(ctx)
	defer x.takeBack(r)
	x.reply.ctx = ctx //nolint:fatcontext // it is set once, for MarkReplyStarted.
	x.handle(r)
	if x.panicked != nil {
		return semel.Completion{}
	}
	return x.completion(semel.DeclaredBy(ctx))
}

// handedOn is the request as the handler gets it: with the body that was read.
func (x *exchange) handedOn(ctx context.Context) *http.Request {
	r := x.request.WithContext(ctx)
	r.ContentLength, r.TransferEncoding = int64(len(x.body.data)), nil
	r.Body = http.NoBody
	if len(x.body.data) > 0 {
		r.Body = &x.body
	}
	return r
}

// takeBack ends what the handler was given.
func (x *exchange) takeBack(r *http.Request) {
	x.body.Close()
	if r.MultipartForm != nil {
		r.MultipartForm.RemoveAll() // net/http does that for its own request only
	}
}

// failsOpen reports whether the handler is to run although the store could not
// be asked. One that has run is not run again, and a saved reply that may not
// be shown is a finished operation. Whether it has run is known only if it is
// not running still, which the error tells first.
func (x *exchange) failsOpen(err error) bool {
	return x.p.route.FailOpen && errors.Is(err, semel.ErrStoreUnavailable) &&
		!errors.Is(err, semel.ErrReplayRefused) && !x.entered
}

// runUnprotected hands the request to the handler as if nothing were in
// between, because the store could not be asked.
func (x *exchange) runUnprotected(cause error) {
	x.cause, x.outcome, x.problem = cause, outcomeUnprotected, ProblemStoreUnavailable
	x.w.Header().Set(headerOutcome, outcomeUnprotected)
	r := x.handedOn(x.request.Context())
	defer x.takeBack(r)
	x.p.next.ServeHTTP(x.w, r)
}

// handle calls the handler. A panic goes on when its end is saved; the stack is
// lost then. Giving up by http.ErrAbortHandler is no fault to log.
func (x *exchange) handle(r *http.Request) {
	defer func() {
		x.reply.close()
		x.panicked = recover()
		if x.panicked != nil && x.panicked != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so.
			x.logPanic(r.Context())
		}
	}()
	x.p.next.ServeHTTP(&x.reply, r)
}

// drop gives the buffers back when the last goroutine is done with them.
func (x *exchange) drop() {
	if x.users.Add(-1) > 0 {
		return
	}
	budget := &x.p.mw.budget
	x.body.free(budget)
	if x.reply.p != nil {
		x.reply.free()
	}
}

// end logs and counts the request, and marks an answer that somebody outside
// will give in place of this middleware: after a panic.
func (x *exchange) end() {
	if x.status == 0 && x.outcome != outcomeUnprotected {
		x.w.Header().Set(headerOutcome, x.outcome)
	}
	x.log()
	x.p.observe(x.request, semel.Event{
		OperationID: x.record.OperationID,
		Attempt:     x.record.Attempt,
		Duration:    time.Since(x.began),
		Outcome:     x.outcome,
		Problem:     string(x.problem),
	})
}

// traceparent returns the request's W3C trace context, if it is well formed.
func traceparent(r *http.Request) string {
	const form = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	trace := r.Header.Get("Traceparent")
	if len(trace) != len(form) {
		return ""
	}
	for i := range len(trace) {
		hexadecimal := '0' <= trace[i] && trace[i] <= '9' || 'a' <= trace[i] && trace[i] <= 'f'
		if (form[i] == '-') != (trace[i] == '-') || form[i] != '-' && !hexadecimal {
			return ""
		}
	}
	return trace
}
