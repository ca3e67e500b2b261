package semel_test

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// Names are appended to the constants and to the lists of words apart from each
// other: the last of each shows when one is forgotten.
func TestEachKindHasItsWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last, after fmt.Stringer
		want        string
	}{
		{semel.BeginReleased, semel.BeginReleased + 1, "released"},
		{semel.EraseRefused, semel.EraseRefused + 1, "refused"},
		{semel.HeldFinal, semel.HeldFinal + 1, "final"},
		{semel.OutcomeReleased, semel.OutcomeReleased + 1, "released"},
		{semel.StateUnknown, semel.StateUnknown + 1, "unknown"},
		{semel.EventSweep, semel.EventSweep + 1, "sweep"},
	} {
		t.Run(fmt.Sprintf("%T", c.last), func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.last.String(), c.want, "the last")
			assert.Equal(t, c.after.String(), "invalid", "the one after it")
		})
	}
}
