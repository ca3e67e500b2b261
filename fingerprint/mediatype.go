package fingerprint

import (
	"iter"
	"slices"
	"strings"

	"github.com/semel-dev/semel/internal/httpfield"
)

// param is a parameter of a media type: its name in lower case, its value
// as parseParam leaves it.
type param struct{ name, value string }

func (p param) compare(q param) int { return strings.Compare(p.name, q.name) }

// maxParams bounds the parameters of one type: each is compared with all before
// it. Real ones have up to five or so.
const maxParams = 16

// parseTyped reads a media type (RFC 9110 section 8.3.1) or a disposition
// (RFC 6266 section 4.1) and appends its parameters to params, which is empty.
// It reports false for what is not exactly of that form, for a name given twice,
// and above maxParams.
func parseTyped(s string, params []param) (kind string, _ []param, ok bool) {
	kind, rest, more := cutSemicolon(s)
	kind = strings.ToLower(httpfield.Trim(kind))
	major, minor, slash := strings.Cut(kind, "/")
	if !httpfield.IsToken(major) || slash && !httpfield.IsToken(minor) {
		return "", params, false
	}
	var text string
	for more {
		text, rest, more = cutSemicolon(rest)
		if text = httpfield.Trim(text); text == "" {
			continue
		}
		if len(params) == maxParams {
			return "", params, false
		}
		p, ok := parseParam(text)
		if !ok || slices.ContainsFunc(params, func(q param) bool { return q.name == p.name }) {
			return "", params, false
		}
		params = append(params, p)
	}
	return kind, params, true
}

// parseParam reads one parameter. Quotes are taken off its value, but escapes
// are left in it: readers differ over those. Charsets have no case.
func parseParam(text string) (param, bool) {
	name, value, _ := strings.Cut(text, "=")
	p := param{name: strings.ToLower(name), value: value}
	if !httpfield.IsToken(name) || !httpfield.IsToken(value) && quotedEnd(value) != len(value) {
		return param{}, false
	}
	if value[0] == '"' {
		p.value = value[1 : len(value)-1]
	}
	if p.name == "charset" {
		p.value = strings.ToLower(p.value)
	}
	return p, true
}

// cutSemicolon cuts s at the first semicolon that is not inside quotes.
func cutSemicolon(s string) (before, after string, found bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ';':
			return s[:i], s[i+1:], true
		case '"':
			end := quotedEnd(s[i:])
			if end < 0 {
				return s, "", false
			}
			i += end - 1
		}
	}
	return s, "", false
}

// quotedEnd returns the offset just past the quoted string that s starts
// with, or -1 if there is none.
func quotedEnd[T string | []byte](s T) int {
	if len(s) == 0 || s[0] != '"' {
		return -1
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// encoded reports whether a body has been encoded by anything but identity.
func encoded(header []string) bool {
	for range codings(header) {
		return true
	}
	return false
}

// codings yields the content codings of a header in lower case, in order
// (RFC 9110 section 8.4). Identity is none.
func codings(header []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for coding := range httpfield.Members(header) {
			if coding != "identity" && !yield(coding) {
				return
			}
		}
	}
}
