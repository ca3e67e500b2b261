package shop

import (
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestOnlyTheLatestGuessesAreRemembered(t *testing.T) {
	t.Parallel()
	g := newGuesses(2)
	for _, order := range []string{"o_1", "o_2", "o_3"} {
		g.make(payments.Keyed, order, guess{Said: doYes})
		g.make(payments.Keyed, order, guess{Said: doNo}) // is none, and pushes nothing out
	}
	assert.Equal(t, g.of(payments.Keyed, "o_1"), guess{}, "the oldest")
	assert.Equal(t, g.of(payments.Keyed, "o_2"), guess{Said: doYes})
	assert.Equal(t, g.of(payments.Keyed, "o_3"), guess{Said: doYes})
	assert.Equal(t, g.of(payments.Keyless, "o_3"), guess{}, "the same order at another till")
	assert.Equal(t, len(g.made), 2, "guesses in memory")
	assert.Equal(t, len(g.queue), 2, "their names in memory")
}
