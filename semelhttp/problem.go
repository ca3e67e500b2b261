package semelhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// WellKnownPath is where WellKnown is to be served.
const WellKnownPath = "/.well-known/idempotency"

const (
	headerOutcome  = "Semel-Outcome"
	headerReplayed = "Idempotent-Replayed"
	mediaProblem   = "application/problem+json"
	rulesLink      = `<` + WellKnownPath + `>; rel="describedby"; type="application/json"`
)

// problem is one error answer. What is zero comes from the table.
type problem struct {
	code           ProblemCode
	detail         string
	outcome        string
	wait           time.Duration
	originalStatus int
	reason         string
}

// problemBody is a problem on the wire (RFC 9457).
type problemBody struct {
	Type           string      `json:"type"`
	Title          string      `json:"title"`
	Status         int         `json:"status"`
	Detail         string      `json:"detail,omitempty"`
	Code           ProblemCode `json:"code"`
	Retry          bool        `json:"retry"`
	OriginalStatus int         `json:"originalStatus,omitempty"`
	Reason         string      `json:"reason,omitempty"`
}

// WriteProblem answers with the problem that code names, for handlers that
// meet one of Semel's own conditions. The detail is for people and may be
// empty. A code that is not in the table is answered as an error 500.
func (m *Middleware) WriteProblem(w http.ResponseWriter, code ProblemCode, detail string) {
	if _, ok := problemByCode[code]; !ok {
		http.Error(w, "semelhttp: no problem is called "+strconv.Quote(string(code)), http.StatusInternalServerError)
		return
	}
	m.writeProblem(w, problem{code: code, detail: detail})
}

// writeProblem answers with p and returns the status and the outcome that it
// answered with.
func (m *Middleware) writeProblem(w http.ResponseWriter, p problem) (status int, outcome string) {
	t := problemByCode[p.code]
	if p.outcome == "" {
		p.outcome = t.outcome
	}
	if p.wait == 0 {
		p.wait = t.wait
	}
	body, _ := json.Marshal(problemBody{ //nolint:errchkjson // strings, numbers and booleans cannot fail.
		Type:           m.cfg.ProblemBase + string(p.code),
		Title:          t.title,
		Status:         t.status,
		Detail:         p.detail,
		Code:           p.code,
		Retry:          t.retry,
		OriginalStatus: p.originalStatus,
		Reason:         p.reason,
	})
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", mediaProblem)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Add("Link", rulesLink)
	h.Set(headerOutcome, p.outcome)
	if t.retry && p.wait > 0 {
		h.Set("Retry-After", retryAfter(p.wait))
	}
	w.WriteHeader(t.status)
	w.Write(body)
	return t.status, p.outcome
}

// retryAfter returns d in whole seconds, rounded up and at least 1: a client
// that waits less comes too early.
func retryAfter(d time.Duration) string {
	seconds := (d + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(seconds, 1)), 10)
}
