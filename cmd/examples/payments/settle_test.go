package payments_test

import (
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAnOrderIsSettledByAResultAndByNothingElse(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		0: false, 100: false, 200: true, 201: true, 303: true,
		400: true, 402: true, 408: false, 409: false, 415: true, 422: true, 425: false, 429: false,
		500: false, 502: false, 503: false,
	} {
		assert.Equal(t, payments.Settles(status), want, "%d", status)
	}
}
