//go:build !race

package fingerprint_test

import (
	"testing"

	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

// The budget of the whole middleware is 14 allocations over the bare handler;
// the fingerprint of common JSON takes none of it.
func TestAFingerprintOfCommonJSONAllocatesNothing(t *testing.T) {
	p := policy(t, fingerprint.Config{Host: true, Headers: []string{"X-Account"}})
	for claim, c := range map[string]struct {
		request fingerprint.Request
		most    float64
	}{
		"JSON of 90 bytes":      {json(`{"amount":2500,"currency":"USD","recipientId":"r_123","note":"lunch with the whole team"}`), 0},
		"JSON to be sorted":     {json(`{"recipient":{"id":"r_123","bank":"b"},"amount":2500,"lines":[{"sku":"B","qty":1},{"sku":"A","qty":2}],"currency":"USD","note":"lunch"}`), 0},
		"JSON with an escape":   {json(`{"note":"caf\u00e9"}`), 1}, // to undo it
		"JSON with its charset": {post("application/json; charset=utf-8", `{"b":1,"a":2}`), 0},
		"bytes":                 {post("application/octet-stream", "\x00\x01"), 0},
		"no body":               {post("", ""), 0},
	} {
		got := testing.AllocsPerRun(200, func() { p.Of(c.request) })
		assert.True(t, got <= c.most, "%s: got %v allocations, want at most %v", claim, got, c.most)
	}
}
