package shop

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
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

func TestAKillIsToldBeforeTheConnectionThatItBreaks(t *testing.T) {
	t.Parallel()
	line := func(ms int, rest string) string {
		return fmt.Sprintf(`{"time":"2026-01-02T15:04:05.%03dZ",%s}`, ms, rest)
	}
	const broke, ended = `"msg":"connection to the process broke"`, `"msg":"process ended","which":"service","pid":7,"how":"signal: killed"`
	hops := storyOf([]front.Entry{
		{ID: 1, Lines: []string{line(1, `"msg":"request passed on"`), line(3, broke), line(6, ended)}},
		{ID: 2, Lines: []string{line(2, `"msg":"request passed on"`), line(4, broke), line(6, ended)}},
		{ID: 3, Lines: []string{line(7, `"msg":"request passed on"`), line(8, broke)}},
	})
	var got []string
	for i, h := range hops {
		got = append(got, string(h.Mark))
		assert.True(t, i == 0 || !h.At.Before(hops[i-1].At), "time goes on at %s", h.sentence())
	}
	assert.Equal(t, got, []string{"ask", "ask", "killed", "unknown", "killed", "unknown", "ask", "unknown"})
}
