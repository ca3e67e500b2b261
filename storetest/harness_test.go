package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// bare hides the abilities of the store inside.
type bare struct{ semel.Store }

func TestHarness(t *testing.T) {
	t.Parallel()
	newBare := func(t *testing.T) semel.Store {
		t.Helper()
		s, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		return bare{s}
	}
	advance := func(*testing.T, semel.Store, time.Duration) {}
	all := Auditing | Joining | Processes | WriteCounting | Stalling | Listing | Erasing | Scheduling

	t.Run("without New or Advance nothing can be run", func(t *testing.T) {
		t.Parallel()
		for _, h := range []Harness{{Advance: advance}, {New: newBare}} {
			assert.Contains(t, strings.Join(h.missing(t), "\n"), "required")
		}
	})
	t.Run("what is neither provided nor named as lacking is asked for", func(t *testing.T) {
		t.Parallel()
		h := Harness{New: newBare, Advance: advance}
		said := h.missing(t)
		assert.Equal(t, len(said), 8, "sentences")
		for i, name := range []string{"Auditing", "Joining", "Processes", "WriteCounting", "Stalling", "Listing", "Erasing", "Scheduling"} {
			assert.Contains(t, said[i], name)
		}
	})
	t.Run("what is named as lacking is not asked for", func(t *testing.T) {
		t.Parallel()
		h := Harness{New: newBare, Advance: advance, Lacks: all}
		assert.Equal(t, len(h.missing(t)), 0, "sentences")
	})
	t.Run("every rule has a name of its own in its chapter, and a test", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, c := range chapters() {
			assert.True(t, !seen[c.name], "the chapter %q is new", c.name)
			seen[c.name] = true
			for _, r := range c.rules {
				name := c.name + "/" + r.name
				assert.True(t, !seen[name] && r.test != nil, "the rule %q is new and has a test", name)
				assert.True(t, !strings.Contains(r.name, "/"), "the rule %q has no slash in its name", name)
				seen[name] = true
			}
		}
	})
}
