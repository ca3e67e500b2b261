package check

import (
	"net/http"
	"slices"
	"strings"
)

const hidden = "***"

// masked hides the values of fields that hold secrets. The key's own field is none
// of them, whatever its name: without its keys nobody could read what was sent, or
// send it again.
func (r *run) masked(xs []Exchange) []Exchange {
	out := slices.Clone(xs)
	for i := range out {
		out[i].Header = r.maskedFields(out[i].Header)
		out[i].ReplyHeader = r.maskedFields(out[i].ReplyHeader)
	}
	return out
}

func (r *run) maskedFields(h http.Header) http.Header {
	out := Masked(h)
	for name := range r.proofs {
		if out[name] != nil {
			out[name] = []string{hidden}
		}
	}
	if keys := h.Values(r.target.KeyHeader); keys != nil {
		out[http.CanonicalHeaderKey(r.target.KeyHeader)] = keys
	}
	return out
}

// Masked returns fields with the values hidden that may be secrets.
func Masked(h http.Header) http.Header {
	h = h.Clone()
	for name := range h {
		if isSecret(name) {
			h[name] = []string{hidden}
		}
	}
	return h
}

func isSecret(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "cookie", "token", "secret", "api-key", "apikey", "password", "credential"},
		func(part string) bool { return strings.Contains(lower, part) })
}
