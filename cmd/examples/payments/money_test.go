package payments_test

import (
	"math"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestMoneyIsWrittenInDollars(t *testing.T) {
	t.Parallel()
	for minor, want := range map[int64]string{
		0: "$0.00", 5: "$0.05", 2500: "$25.00", 100_000: "$1,000.00", 123_456_789_01: "$123,456,789.01", -2500: "-$25.00",
		math.MinInt64: "-$92,233,720,368,547,758.08",
	} {
		assert.Equal(t, payments.Money(minor), want)
	}
}
