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
		out[i].Header = maskHeader(out[i].Header)
		out[i].ReplyHeader = maskHeader(out[i].ReplyHeader)
	}
	return out
}

func maskHeader(h http.Header) http.Header {
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
