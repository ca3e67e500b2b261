package payments

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// MaxLease is the longest lease that one may set: a killed attempt would be
// waited for that long.
const MaxLease = 30 * time.Second

// ParseLease reads how long a claim is to hold, from [semel.MinLease] to
// MaxLease. The error is a sentence for who set it.
func ParseLease(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < semel.MinLease || d > MaxLease {
		return 0, fmt.Errorf("lease is %q; it must be a duration from %v to %v", text, semel.MinLease, MaxLease)
	}
	return d, nil
}
