//go:build !race

package idempotencykey_test

import (
	"testing"

	"github.com/semel-dev/semel/idempotencykey"
	"github.com/semel-dev/semel/internal/assert"
)

func TestParseOfACommonKeyAllocatesNothing(t *testing.T) {
	for _, value := range []string{
		"8e03978e-40d5-43e8-bc93-6894a57f9324",
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`,
		` "8e03978e-40d5-43e8-bc93-6894a57f9324" `,
	} {
		values := []string{value}
		got := testing.AllocsPerRun(100, func() {
			if _, err := idempotencykey.Parse(values, false); err != nil {
				t.Error(err)
			}
		})
		assert.Equal(t, got, 0, "%q", value)
	}
}
