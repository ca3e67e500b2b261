package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/semel-dev/semel/internal/httpfield"
)

// The defaults of Target and Config.
const (
	DefaultKeyHeader      = "Idempotency-Key"
	DefaultTimeout        = 15 * time.Minute
	DefaultRequestTimeout = 30 * time.Second
)

// Target is the operation under test.
type Target struct {
	// Method is POST when empty.
	Method string
	URL    string
	// Header is sent with every request, the key's own field excepted.
	Header http.Header
	// Body is sent with every request. Each {{unique}} in it becomes a value that
	// is new for each operation and the same in each try of it, for APIs that
	// refuse two orders of one number.
	Body []byte
	// OtherBody is another good request, for the cases in which a key comes with
	// another body. Empty: Body with the value at MismatchPointer changed.
	OtherBody []byte
	// MismatchPointer is an RFC 6901 JSON pointer to a number, string or boolean of
	// Body. Empty: the first number or string.
	MismatchPointer string
	// RefusedBody is a request that the API refuses with a 4xx, FailingBody one
	// that it cannot carry out and answers with a 5xx. Cases that need one are
	// skipped without it.
	RefusedBody, FailingBody []byte
	// TenantHeader is the field that tells callers apart, Tenants two of its
	// values that may both use the operation.
	TenantHeader string
	Tenants      [2]string
	// Observe counts effects. Nobody else may cause any meanwhile.
	Observe *Observe
	// Ignore names leaves of a reply that say nothing of which execution it comes
	// from, such as the id of the request: JSON pointers, or "Location".
	Ignore []string
	// KeyHeader is the field that carries the key. Default DefaultKeyHeader.
	KeyHeader string
	// BareKeys sends keys without the quotes of a structured field's string.
	BareKeys bool
	// AuthorizeFunc returns fields that are set on each request on top of Header.
	// It is asked once, and again when a reply is 401.
	AuthorizeFunc func(ctx context.Context) (http.Header, error)
}

// Observe is where effects can be counted: a GET of URL answers JSON, in which
// the value at Pointer (RFC 6901) is a number, or an array that is as long.
type Observe struct {
	URL     string
	Pointer string
	Header  http.Header
}

// Config is how a target is tested. The zero value is ready to use.
type Config struct {
	// Run holds ids or beginnings of ids of the cases to run; empty means all.
	Run []string
	// Skip holds ids or beginnings of ids of cases not to run, with the reason.
	Skip map[string]string
	// Strict makes a broken SHOULD a failure.
	Strict bool
	// Seed chooses where replies are cut. Keys are always new.
	Seed uint64
	// RequestsPerSecond slows down all but the cases that send at once. 0: no limit.
	RequestsPerSecond float64
	// Timeout is how long all may take: what was found by then is reported.
	// Default DefaultTimeout.
	Timeout time.Duration
	// RequestTimeout is how long a request may take. Default
	// DefaultRequestTimeout.
	RequestTimeout time.Duration
	// DialContextFunc connects to the API, for one that listens on a Unix socket.
	DialContextFunc func(ctx context.Context, network, address string) (net.Conn, error)
	// ProgressFunc is called before each case: which it is, from 1, and of how many.
	ProgressFunc func(n, of int, next Case)
}

func (t Target) withDefaults() (Target, error) {
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	if t.KeyHeader == "" {
		t.KeyHeader = DefaultKeyHeader
	}
	for field, name := range map[string]string{"Method": t.Method, "KeyHeader": t.KeyHeader, "TenantHeader": t.TenantHeader} {
		if name != "" && !httpfield.IsToken(name) {
			return t, fmt.Errorf("check: Target.%s is %q; it must be a token (RFC 9110 section 5.6.2)", field, name)
		}
	}
	if err := checkFields("Header", t.Header); err != nil {
		return t, err
	}
	if err := checkURL("URL", t.URL); err != nil {
		return t, err
	}
	if t.Observe != nil {
		if err := errors.Join(checkURL("Observe.URL", t.Observe.URL), checkFields("Observe.Header", t.Observe.Header)); err != nil {
			return t, err
		}
	}
	if t.TenantHeader != "" && (t.Tenants[0] == t.Tenants[1] || t.Tenants[0] == "" || t.Tenants[1] == "") {
		return t, errors.New("check: Target.Tenants must be two different callers when TenantHeader is set")
	}
	if t.OtherBody != nil && t.MismatchPointer != "" {
		return t, errors.New("check: Target.OtherBody and MismatchPointer exclude each other")
	}
	return t, nil
}

func checkURL(field, text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("check: Target.%s must be an http or https address with a host, such as http://localhost:8080/payments, not %q", field, text)
	}
	return nil
}

// checkFields does not show a value, which may be a secret.
func checkFields(field string, h http.Header) error {
	for name, values := range h {
		if !httpfield.IsToken(name) {
			return fmt.Errorf("check: Target.%s has a field called %q, which is no token (RFC 9110 section 5.6.2)", field, name)
		}
		for _, value := range values {
			if strings.ContainsAny(value, "\r\n\x00") {
				return fmt.Errorf("check: Target.%s: the value of %s has a line end or a NUL in it", field, name)
			}
		}
	}
	return nil
}

func (cfg Config) inBounds() error {
	if n := cfg.RequestsPerSecond; n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("check: Config.RequestsPerSecond is %v; it must be a number from 0 up", n)
	}
	for field, d := range map[string]time.Duration{"Timeout": cfg.Timeout, "RequestTimeout": cfg.RequestTimeout} {
		if d < 0 {
			return fmt.Errorf("check: Config.%s is %v; it must not be negative", field, d)
		}
	}
	return nil
}
