package check

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	hidden = "***"
	// shortestSecret is the length from which a secret is looked for wherever it
	// may stand: shorter ones would hide half of a reply.
	shortestSecret = 8
)

// masked hides the values of fields that hold secrets, also where a reply repeats
// them, and those of addresses. The key's own field is no secret, whatever its
// name: without its keys nobody could read what was sent, or send it again.
func (r *run) masked(xs []Exchange) []Exchange {
	out := slices.Clone(xs)
	var secrets []string
	for i, x := range xs {
		out[i].Header = r.maskedFields(x.Header)
		for name, values := range out[i].Header {
			if slices.Equal(values, []string{hidden}) {
				secrets = append(secrets, x.Header[name]...)
			}
		}
	}
	for i := range out {
		out[i].URL = MaskedURL(out[i].URL)
		out[i].ReplyHeader = r.maskedFields(out[i].ReplyHeader)
		for _, secret := range secrets {
			out[i].hide(secret)
		}
	}
	return out
}

// hide hides a secret of the request where the reply repeats it: the whole value
// of the field, and the credential after its scheme.
func (x *Exchange) hide(secret string) {
	_, credential, _ := strings.Cut(secret, " ")
	for _, text := range []string{secret, credential} {
		if len(text) < shortestSecret {
			continue
		}
		x.ReplyBody = bytes.ReplaceAll(x.ReplyBody, []byte(text), []byte(hidden))
		x.Err = strings.ReplaceAll(x.Err, text, hidden)
		for name, values := range x.ReplyHeader {
			values = slices.Clone(values)
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], text, hidden)
			}
			x.ReplyHeader[name] = values
		}
	}
}

// MaskedURL returns an address without its password, and without the values of its
// query that may be secrets.
func MaskedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // it was parsed before the run
	}
	_, found := u.User.Password()
	if found {
		u.User = url.UserPassword(u.User.Username(), hidden)
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		if name, _, valued := strings.Cut(part, "="); valued && isSecret(name) {
			parts[i], found = name+"="+hidden, true
		}
	}
	if !found {
		return address
	}
	u.RawQuery = strings.Join(parts, "&")
	return strings.ReplaceAll(u.String(), url.QueryEscape(hidden), hidden)
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
	return slices.ContainsFunc([]string{"auth", "cookie", "token", "secret", "api-key", "apikey", "api_key", "access-key", "access_key", "password", "credential", "signature", "session"},
		func(part string) bool { return strings.Contains(lower, part) })
}
