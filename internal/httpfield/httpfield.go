// Package httpfield reads header fields by the grammar of RFC 9110, for the
// packages that have to agree on it.
package httpfield

import (
	"iter"
	"slices"
	"strings"
)

// IsToken reports whether s is a token (RFC 9110 section 5.6.2): the name of a
// field or of a method.
func IsToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// Trim takes optional white space off (RFC 9110 section 5.6.3).
func Trim(s string) string { return strings.Trim(s, " \t") }

// Members yields the members of a comma-separated field in lower case, those of
// all its lines in order. Empty ones are left out (RFC 9110 section 5.6.1.2). It
// knows no quotes: it is for fields whose members are tokens.
func Members(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for member := range strings.SplitSeq(line, ",") {
				member = strings.ToLower(Trim(member))
				if member != "" && !yield(member) {
					return
				}
			}
		}
	}
}

// connection are the fields of one connection, which go no further (RFC 9110
// section 7.6.1), in canonical form.
var connection = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// IsOfConnection reports whether a field belongs to one connection by its name,
// which is in canonical form. Those that Connection lists besides do as well.
func IsOfConnection(canonical string) bool { return slices.Contains(connection, canonical) }
