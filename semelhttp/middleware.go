package semelhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/httpfield"
)

// DefaultKeyHeader is the request header that carries the key
// (draft-ietf-httpapi-idempotency-key-header-07).
const DefaultKeyHeader = "Idempotency-Key"

// DefaultProblemBase is the address that the code is appended to in the type
// of a problem (RFC 9457 section 3.1.1).
const DefaultProblemBase = "https://github.com/semel-dev/semel/blob/main/docs/problems.md#"

// ScopeFunc says whose key it is: a text that is the same for every request of
// one caller and differs between callers, such as "customer:" and the id that
// authentication found. It may name the operation, never the raw path. An error
// or a scope that is empty or longer than semel.MaxScopeLength is answered with
// 403 scope-missing, and nothing runs. The error's text is logged, and not shown
// to the client.
type ScopeFunc func(*http.Request) (string, error)

// CredentialFunc returns a keyed digest of the caller's credential; see
// [AuthorizationHMAC].
type CredentialFunc func(*http.Request) semel.Digest

// Config holds the optional settings of a Middleware. Zero means the default.
type Config struct {
	// KeyHeader names the header that carries the key, and nothing else: a
	// header that HTTP gives another meaning is refused. Default
	// DefaultKeyHeader.
	KeyHeader string
	// StrictKey refuses bare keys: only RFC 9651 strings in double quotes.
	StrictKey bool
	// MaxRequestBody is the most bytes of a keyed request's body. Default
	// semel.DefaultMaxRequestBody.
	MaxRequestBody int64
	// MaxReplyBody is the most bytes of a reply that is kept in memory and
	// saved. A larger reply goes through a file in os.TempDir and is not kept;
	// if there can be no such file not even the first client gets it, and is
	// told so. Default semel.DefaultMaxReplyBody.
	MaxReplyBody int64
	// ByteBudget bounds the request and reply bytes held in memory at one
	// time, over all routes of the Middleware (R33). Each Middleware has a
	// budget of its own: have one in a process, or divide what the process may
	// hold among them. Default semel.DefaultByteBudget.
	ByteBudget int64
	// BodyReadTimeout bounds the reading of a body. It works through
	// http.ResponseController: a middleware outside this one that wraps the
	// ResponseWriter needs an Unwrap method. Default
	// semel.DefaultBodyReadTimeout.
	BodyReadTimeout time.Duration
	// Credential, for a scope that does not tell callers apart, lets a
	// replay go only to the credential that the key was first used with (R4).
	// Default none.
	Credential CredentialFunc
	// OlderFingerprints are configurations that records may still carry,
	// kept until those have expired (R21).
	OlderFingerprints []fingerprint.Config
	// PublishedScope says in the published rules by what scopes differ.
	// Default "caller".
	PublishedScope string
	// ProblemBase is the address of the problem descriptions; a code is
	// appended to it as it is. Default DefaultProblemBase.
	ProblemBase string
	// Logger gets one line for each keyed request. At debug: replays, repeats
	// that did not run, and refused requests; at info: what ran, and keys used
	// for another request or by another caller; at warn: takeovers, outcomes
	// nobody knows, a reply that was lost, other answers from 500 on, and what
	// ran without the store (Route.FailOpen); at error: faults of the store. A
	// handler that panics has a line at error besides. Default slog.Default().
	Logger *slog.Logger
	// LogKeys logs the keys themselves in place of a digest. Keys may hold
	// what nobody should read in a log.
	LogKeys bool
}

// Middleware protects routes with one guard and one scope. It is safe for
// concurrent use and owns no goroutine.
type Middleware struct {
	guard  *semel.Guard
	rules  semel.Rules
	scope  ScopeFunc
	cfg    Config
	budget budget

	mu     sync.Mutex
	routes []*protected
}

// New returns a middleware over guard. Scope is a required choice: without it one
// caller's key would show another caller's reply. A store that forgets with
// its process is worth a line at warn level. Errors match semel.ErrConfig.
func New(guard *semel.Guard, scope ScopeFunc, cfg Config) (*Middleware, error) {
	if guard == nil {
		return nil, configError("guard", "is required: the semel.Guard that keeps the records")
	}
	if scope == nil {
		return nil, configError("scope", "is required: a ScopeFunc that tells callers apart")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	m := &Middleware{guard: guard, rules: guard.Rules(), scope: scope, cfg: cfg}
	m.budget.left.Store(cfg.ByteBudget)
	if m.rules.Class == semel.BestEffort {
		cfg.Logger.Warn("semel: the store protects this process alone, and forgets all with it", "store_class", string(m.rules.Class))
	}
	return m, nil
}

// takenHeaders cannot carry the key, and neither can those of a connection. Of
// some net/http takes the header out of the request, so that every key would be
// missing; the others are the same in requests that differ, or differ between
// two tries of one.
var takenHeaders = []string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control",
	"Content-Encoding", "Content-Language", "Content-Length", "Content-Type", "Cookie", "Date", "Expect", "Forwarded",
	"From", "Host", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
	"Max-Forwards", "Origin", "Pragma", "Proxy-Authorization", "Range", "Referer",
	"Traceparent", "Tracestate", "User-Agent", "Via",
}

// complete fills in the defaults and checks every field once.
func (c *Config) complete() error {
	for _, b := range []struct {
		name  string
		field *int64
		def   int64
	}{
		{"MaxRequestBody", &c.MaxRequestBody, semel.DefaultMaxRequestBody},
		{"MaxReplyBody", &c.MaxReplyBody, semel.DefaultMaxReplyBody},
		{"ByteBudget", &c.ByteBudget, semel.DefaultByteBudget},
	} {
		if *b.field < 0 {
			return configError(b.name, fmt.Sprintf("is %d bytes; it must be positive", *b.field))
		}
		if *b.field == 0 {
			*b.field = b.def
		}
	}
	if c.BodyReadTimeout < 0 {
		return configError("BodyReadTimeout", fmt.Sprintf("is %v; it must be positive", c.BodyReadTimeout))
	}
	if c.BodyReadTimeout == 0 {
		c.BodyReadTimeout = semel.DefaultBodyReadTimeout
	}
	if c.KeyHeader == "" {
		c.KeyHeader = DefaultKeyHeader
	}
	if !httpfield.IsToken(c.KeyHeader) {
		return configError("KeyHeader", fmt.Sprintf("is %q, which is not a header name (RFC 9110 section 5.1)", c.KeyHeader))
	}
	c.KeyHeader = http.CanonicalHeaderKey(c.KeyHeader)
	if slices.Contains(takenHeaders, c.KeyHeader) || httpfield.IsOfConnection(c.KeyHeader) {
		return configError("KeyHeader", fmt.Sprintf("is %q, which means something else in a request; choose one that holds the key alone", c.KeyHeader))
	}
	if c.PublishedScope == "" {
		c.PublishedScope = "caller"
	}
	if c.ProblemBase == "" {
		c.ProblemBase = DefaultProblemBase
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for i, older := range c.OlderFingerprints {
		if _, err := fingerprint.New(older); err != nil {
			return configErrorOf(fmt.Sprintf("OlderFingerprints[%d]", i), err)
		}
	}
	return nil
}

func configError(field, problem string) error {
	return semel.NewError(semel.CodeConfig, nil, "semelhttp: %s %s", field, problem)
}

// configErrorOf is a refusal by the guard or by the fingerprint, with the place
// where the setting stands.
func configErrorOf(place string, err error) error {
	var known *semel.Error
	if !errors.As(err, &known) {
		return err
	}
	return configError(place+":", known.Text)
}
