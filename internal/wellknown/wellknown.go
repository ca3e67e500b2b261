// Package wellknown reads the rules that a service publishes of its keys, as
// semelhttp writes them.
package wellknown

import (
	"slices"
	"strings"
)

// Path is where a service publishes its rules.
const Path = "/.well-known/idempotency"

// Document is what stands there, as far as a caller needs it.
type Document struct {
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is the rules of one operation.
type Endpoint struct {
	Methods   []string `json:"methods"`
	Path      string   `json:"path"`
	Required  bool     `json:"required"`
	Retention int64    `json:"retention"` // seconds
}

// Covers reports whether a request is one of the endpoint. Its path is a pattern
// of net/http: {name} stands for a segment, {name...} and a slash at the end for
// the rest.
func (e Endpoint) Covers(method, path string) bool {
	if len(e.Methods) > 0 && !slices.Contains(e.Methods, method) {
		return false
	}
	pattern, segments := strings.Split(e.Path, "/"), strings.Split(path, "/")
	for i, p := range pattern {
		last := i == len(pattern)-1
		switch {
		case last && (p == "" || p == "{$}" || strings.HasSuffix(p, "...}")):
			return i < len(segments) && (p != "{$}" || segments[i] == "" && i == len(segments)-1)
		case i >= len(segments):
			return false
		case strings.HasPrefix(p, "{") && strings.HasSuffix(p, "}"):
			if segments[i] == "" {
				return false
			}
		case p != segments[i]:
			return false
		}
	}
	return len(pattern) == len(segments)
}
