package payments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/semel-dev/semel"
)

// ProblemBase is where the types of this system's problems are described.
const ProblemBase = "https://github.com/semel-dev/semel/blob/main/docs/demo.md#"

// Problem is a refusal as RFC 9457 has it. Its types are this system's own:
// what Semel refuses carries Semel's types.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	// Field is the member, header or path part that is wrong, if it is one.
	Field string `json:"field,omitempty"`
}

// titles of the codes, in the words of docs/demo.md.
var titles = map[string]string{
	"payment-invalid":          "The payment cannot be understood",
	"order-invalid":            "The order cannot be understood",
	"content-type-unsupported": "The body must be JSON",
	"connection-invalid":       "The request has a part that is not passed on",
	"header-too-large":         "The request has a header that is too large",
	"body-too-large":           "The body is too large",
	"body-incomplete":          "The body did not arrive whole",
	"key-missing":              "The Idempotency-Key is missing",
	"key-too-long":             "The Idempotency-Key is too long",
	"not-found":                "There is no such thing here",
	"charge-declined":          "The bank declined the charge",
	"charge-key-reused":        "The bank knows this key for another charge",
	"bank-error":               "The bank did not do its part",
	"payment-unsaved":          "The bank was asked, and what came of it could not be saved",
	"internal":                 "The service could not do its part",
	"service-unavailable":      "The process behind this address cannot do its part now",
	"fault-invalid":            "There is no such fault",
	"crowd-invalid":            "The run cannot be started",
	"crowd-running":            "A run is under way",
	"setting-invalid":          "The setting cannot be changed",
	"host-unknown":             "The demo does not answer under this name",
}

// ProblemCodes returns the codes of all problems, each with a section in
// docs/demo.md.
func ProblemCodes() []string { return slices.Sorted(maps.Keys(titles)) }

// NewProblem returns a problem of the given code.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: ProblemBase + code, Title: titles[code], Status: status, Detail: detail, Code: code}
}

// Write sends p as the answer.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(p.Body())
}

// Body returns p as JSON.
func (p *Problem) Body() []byte { return Marshal(p) }

// MaxBody is the longest body that any process here reads, in bytes; it is
// Semel's own limit.
const MaxBody = semel.DefaultMaxRequestBody

// ReadBody reads the whole body of r.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, NewProblem(http.StatusRequestEntityTooLarge, "body-too-large", fmt.Sprintf("the body is over %d bytes", MaxBody))
	}
	if err != nil {
		return nil, NewProblem(http.StatusBadRequest, "body-incomplete", "the body did not arrive whole; nothing ran")
	}
	return body, nil
}

// NotFound answers every path that leads nowhere.
func NotFound(w http.ResponseWriter, r *http.Request) {
	NewProblem(http.StatusNotFound, "not-found", "there is nothing at "+r.URL.Path+" for "+r.Method).Write(w)
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(Marshal(v))
}

// Marshal returns v as one line of JSON. It is for the plain structs of this
// system, which always have a JSON form.
func Marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"code":"internal"}`)
	}
	return append(b, '\n')
}
