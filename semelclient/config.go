package semelclient

import (
	"context"
	"net/http"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/httpfield"
	"github.com/semel-dev/semel/semelclient/retry"
)

// The defaults of Config.
const (
	DefaultDeadline       = 2 * time.Minute
	DefaultAttemptTimeout = 30 * time.Second
	DefaultRetention      = 24 * time.Hour
	DefaultSettleAfter    = 10 * time.Minute
	DefaultKeyHeader      = "Idempotency-Key"
	DefaultMaxBody        = 1 << 20
	DefaultMaxReply       = 8 << 20
	DefaultParallel       = 8
)

// Config changes what a Client does. Zero fields mean their defaults.
type Config struct {
	// Transport sends one attempt. Default: a clone of http.DefaultTransport.
	// One that retries by itself takes the decisions out of the client's hands;
	// what it sends to a connection is counted all the same if it calls the hooks
	// of net/http/httptrace.
	Transport http.RoundTripper
	// Policy bounds waits and attempts.
	Policy retry.Policy
	// Deadline bounds one call of Do, AttemptTimeout each attempt in it, its
	// reply's body included. Defaults 2 minutes and 30 seconds.
	Deadline, AttemptTimeout time.Duration

	// AuthorizeFunc adds the credential to an attempt. It may change the headers
	// and nothing else. With renew the last one was refused (401), and a new
	// one is to be fetched. An error counts as an attempt that never left.
	AuthorizeFunc func(req *http.Request, renew bool) error
	// AskFunc finds out in another way than by sending it again what became of an
	// intent, for instance by GET /payments?reference=…, and returns Unknown if
	// that does not tell. It is asked where Do would end as Unknown. Its
	// NotApplied counts only where no attempt can still be on its way: see
	// SettleAfter.
	AskFunc func(ctx context.Context, in Intent) (Outcome, error)
	// SettleAfter is how long after it was sent an attempt may still take
	// effect: the time the service works on a request, and that of the network.
	// Default 10 minutes.
	SettleAfter time.Duration
	// Retention is how long the service keeps a key, where it does not publish
	// that itself at /.well-known/idempotency. Default 24 hours.
	Retention time.Duration

	// KeyHeader is the header of the key. Default Idempotency-Key.
	KeyHeader string
	// BareKey sends a drawn key without the quotes that the draft wants, for
	// services that accept nothing else.
	BareKey bool
	// MaxBody and MaxReply bound a request's body and how much of a reply's is
	// kept, in bytes. Defaults 1 MiB and 8 MiB.
	MaxBody, MaxReply int64
	// Parallel is how many intents Recover is at work on at once. Default 8.
	Parallel int

	// ObserveFunc is told of each attempt when it has ended. It must not block.
	ObserveFunc func(Attempt)
}

// Attempt is one attempt of an intent, for logs and metrics.
type Attempt struct {
	Key    string
	Method string
	URL    string
	// Resend is 0 for the first attempt of a call of Do, then 1, 2, …: the
	// attribute http.request.resend_count of OpenTelemetry.
	Resend int
	// Written is how many requests were written to a connection: 0 if none
	// could be had, 1, or more if the transport sends again by itself.
	Written int
	// Status is that of the reply, or 0.
	Status   int
	Replayed bool
	Err      error
	Duration time.Duration
}

// defaulted sets *v to its default if it is zero.
func defaulted[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// checked returns c with its defaults filled in.
func (c Config) checked() (Config, error) {
	if c.Transport == nil {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.Transport = t.Clone()
		} else {
			c.Transport = http.DefaultTransport
		}
	}
	defaulted(&c.Deadline, DefaultDeadline)
	defaulted(&c.AttemptTimeout, DefaultAttemptTimeout)
	defaulted(&c.SettleAfter, DefaultSettleAfter)
	defaulted(&c.Retention, DefaultRetention)
	defaulted(&c.KeyHeader, DefaultKeyHeader)
	defaulted(&c.MaxBody, DefaultMaxBody)
	defaulted(&c.MaxReply, DefaultMaxReply)
	defaulted(&c.Parallel, DefaultParallel)
	c.KeyHeader = http.CanonicalHeaderKey(c.KeyHeader)
	policy, err := c.Policy.Checked()
	if err != nil {
		return c, err
	}
	c.Policy = policy
	switch {
	case c.Deadline < 0:
		return c, badField("Deadline", "is negative")
	case c.AttemptTimeout < 0:
		return c, badField("AttemptTimeout", "is negative")
	case c.SettleAfter < 0:
		return c, badField("SettleAfter", "is negative")
	case c.Retention < 0:
		return c, badField("Retention", "is negative")
	case !httpfield.IsToken(c.KeyHeader):
		return c, badField("KeyHeader", "is not the name of a header")
	case c.MaxBody < 0:
		return c, badField("MaxBody", "is negative")
	case c.MaxReply < 0:
		return c, badField("MaxReply", "is negative")
	case c.Parallel < 0:
		return c, badField("Parallel", "is negative")
	}
	return c, nil
}

func badField(field, problem string) error {
	return semel.NewError(semel.CodeConfig, nil, "semelclient: Config.%s %s", field, problem)
}
