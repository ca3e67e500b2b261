package retry

import (
	"math/rand/v2"
	"time"

	"github.com/semel-dev/semel"
)

// The defaults of Policy.
const (
	DefaultFirst          = 50 * time.Millisecond
	DefaultFirstThrottled = time.Second
	DefaultMost           = 20 * time.Second
	DefaultMaxAttempts    = 20
)

// Policy says how long to wait between attempts, and how many there may be.
// Zero fields mean their defaults.
type Policy struct {
	// First bounds the wait before the first retry; each later bound is twice
	// the one before. Default 50 ms.
	First time.Duration
	// FirstThrottled takes the place of First after an answer that asks for
	// less: 429 and 503. Default 1 s.
	FirstThrottled time.Duration
	// Most caps the bounds. Default 20 s.
	Most time.Duration
	// MaxAttempts is how often one call may send, the first time counted.
	// Default 20.
	MaxAttempts int
}

// Checked returns p with its defaults filled in. The error matches
// semel.ErrConfig and names the field.
func (p Policy) Checked() (Policy, error) {
	if p.First == 0 {
		p.First = DefaultFirst
	}
	if p.FirstThrottled == 0 {
		p.FirstThrottled = DefaultFirstThrottled
	}
	if p.Most == 0 {
		p.Most = DefaultMost
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultMaxAttempts
	}
	switch {
	case p.First < 0:
		return p, badField("First", "is negative")
	case p.FirstThrottled < 0:
		return p, badField("FirstThrottled", "is negative")
	case p.Most < max(p.First, p.FirstThrottled):
		return p, badField("Most", "is less than First or FirstThrottled")
	case p.MaxAttempts < 0:
		return p, badField("MaxAttempts", "is negative")
	}
	return p, nil
}

func badField(field, problem string) error {
	return semel.NewError(semel.CodeConfig, nil, "retry: Policy.%s %s", field, problem)
}

// Bound returns the longest wait before retry n, which counts from 1. The cap is
// applied here, before the jitter, so that late waits differ as well.
func (p Policy) Bound(n int, throttled bool) time.Duration {
	bound := p.First
	if throttled {
		bound = p.FirstThrottled
	}
	for range n - 1 {
		if bound >= p.Most/2 {
			return p.Most
		}
		bound *= 2
	}
	return bound
}

// Wait draws the wait before retry n, which counts from 1: any moment up to
// Bound is as likely as another (full jitter).
func (p Policy) Wait(n int, throttled bool) time.Duration {
	return rand.N(p.Bound(n, throttled) + 1) //nolint:gosec // spreads callers; nobody has to be kept from guessing it.
}
