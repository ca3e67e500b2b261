package semelclient

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel/idempotencykey"
)

// Intent is one thing that is meant to happen once: a request, and the key that
// names it on every try. Client.Intend makes and stores it. Changing a copy
// changes nothing that is sent.
type Intent struct {
	// Key names the intent: a UUIDv7, or what the caller put in the header.
	Key    string
	Method string
	// URL is absolute, and as the caller wrote it.
	URL string
	// Header is what is sent each time, with the key and without credentials,
	// which Config.AuthorizeFunc adds.
	Header http.Header
	Body   []byte
	// Created is when it was stored, by the clock of the process that did.
	Created time.Time

	first *firstUse // the hold of Intend, for the first Do
}

// firstUse is what Intend leaves to the first Do: the intent is held, and not a
// byte of it has left.
type firstUse struct {
	intent Intent
	hold   Hold
	until  time.Time // when a Do has to have begun
	taken  atomic.Bool
}

// take returns f if nobody has taken it yet.
func (f *firstUse) take() *firstUse {
	if f == nil || f.taken.Swap(true) {
		return nil
	}
	return f
}

func (in Intent) clone() Intent {
	in.Header = in.Header.Clone()
	in.Body = bytes.Clone(in.Body)
	in.first = nil
	return in
}

// same reports whether two intents are one request.
func (in Intent) same(other Intent) bool {
	return in.Method == other.Method && in.URL == other.URL && bytes.Equal(in.Body, other.Body)
}

// credentials are headers that are never stored.
var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// ofTransport are headers that the transport writes.
var ofTransport = []string{"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// newIntent checks a request and gives it a key unless the header has one.
func (c *Client) newIntent(method, target string, header http.Header, body []byte) (Intent, error) {
	in := Intent{Method: method, URL: target, Header: make(http.Header, len(header)+1), Body: bytes.Clone(body), Created: time.Now()}
	if err := checkTarget(method, target); err != nil {
		return Intent{}, err
	}
	if int64(len(body)) > c.cfg.MaxBody {
		return Intent{}, invalid("the body has %d bytes; the most is Config.MaxBody, %d", len(body), c.cfg.MaxBody)
	}
	for name, values := range header {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case slices.Contains(credentials, canonical):
			return Intent{}, invalid("the header %s is a credential, and an intent is stored: set it in Config.AuthorizeFunc", canonical)
		case slices.Contains(ofTransport, canonical):
			return Intent{}, invalid("the header %s belongs to the connection", canonical)
		}
		in.Header[canonical] = append(in.Header[canonical], values...)
	}
	key, err := idempotencykey.Parse(in.Header[c.cfg.KeyHeader], false)
	switch {
	case err == nil:
		in.Key = key
	case len(in.Header[c.cfg.KeyHeader]) > 0:
		return Intent{}, err
	default:
		id, err := uuid.NewV7()
		if err != nil {
			return Intent{}, invalid("no key can be drawn: %v", err)
		}
		in.Key = id.String()
		in.Header.Set(c.cfg.KeyHeader, c.keyLine(in.Key))
	}
	return in, nil
}

// keyLine is how a drawn key is written: as the draft wants it (RFC 9651 string),
// or bare.
func (c *Client) keyLine(key string) string {
	if c.cfg.BareKey {
		return key
	}
	return `"` + key + `"`
}

func checkTarget(method, target string) error {
	switch method {
	case "":
		return invalid("it has no method")
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return invalid("%s asks and changes nothing: send it without a key", method)
	}
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return invalid("its URL cannot be read: %v", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return invalid("its URL is not an absolute http or https URL")
	case u.User != nil:
		return invalid("its URL has a credential, and an intent is stored: set it in Config.AuthorizeFunc")
	case strings.Contains(target, "#"):
		return invalid("its URL has a fragment, which is never sent")
	}
	return nil
}
