package fingerprint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/vectors"
)

// The vectors of RFC 8785 are pairs of a text and its canonical form. Two of
// them respell numbers, which here makes another request on purpose, and one of
// these has names that differ only in case, so that it is not even read.
func TestCanonicalJSON(t *testing.T) {
	t.Parallel()
	const caseTwins = "structures.json"
	check := func(t *testing.T, dir string, respelled map[string]bool) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "input", "*.json"))
		assert.NoError(t, err)
		assert.True(t, len(names) >= 3, "only %d vectors in %s", len(names), dir)
		for _, input := range names {
			name := filepath.Base(input)
			a, err := os.ReadFile(input)
			assert.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(dir, "output", name))
			assert.NoError(t, err)
			assert.Equal(t, readAsJSON(t, "application/json", string(a)), name != caseTwins, "%s is read as JSON", name)
			if respelled[name] {
				other(t, json(string(a)), json(string(b)))
			} else {
				same(t, json(string(a)), json(string(b)))
			}
		}
	}
	t.Run("cases of our own", func(t *testing.T) {
		t.Parallel()
		check(t, filepath.Join("testdata", "jcs"), map[string]bool{"numbers.json": true})
	})
	t.Run("vectors of RFC 8785", func(t *testing.T) {
		t.Parallel()
		check(t, vectors.Dir(t, "jcs"), map[string]bool{"values.json": true, caseTwins: true})
	})
}
