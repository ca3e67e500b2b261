package check

import (
	"net/http"
	"slices"
	"strings"
)

const hidden = "***"

// masked hides the values of fields that hold secrets.
func masked(xs []Exchange) []Exchange {
	out := slices.Clone(xs)
	for i := range out {
		out[i].Header = Masked(out[i].Header)
		out[i].ReplyHeader = Masked(out[i].ReplyHeader)
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
