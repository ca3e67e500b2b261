package semel_test

import (
	"encoding/hex"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAFingerprintOfParts(t *testing.T) {
	t.Parallel()
	of := func(parts ...string) semel.Fingerprint {
		var all [][]byte
		for _, part := range parts {
			all = append(all, []byte(part))
		}
		return semel.FingerprintOf(all...)
	}
	t.Run("is the same for good, since records are saved with it", func(t *testing.T) {
		t.Parallel()
		f := of("ab", "", "c")
		assert.Equal(t, hex.EncodeToString(f.Raw[:]), "9c24d27974bb3b173e762a999df89274e93d1e37cba113b996aa47139a011d4a")
		assert.Equal(t, f.Meaning, f.Raw)
		assert.Equal(t, f.Policy, "bytes/1")
	})
	t.Run("differs where any part does, also if their joined text does not", func(t *testing.T) {
		t.Parallel()
		seen := map[semel.Digest]bool{}
		for _, parts := range [][]string{{}, {""}, {"abc"}, {"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}, {"ABC"}} {
			raw := of(parts...).Raw
			assert.Equal(t, seen[raw], false, "%q", parts)
			seen[raw] = true
		}
	})
}
