package wellknown

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// TestCovers reads the cases that the client in the browser is held against too.
func TestCovers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../semelclient/testdata/outcomes.json")
	assert.NoError(t, err)
	var cases struct {
		Paths []struct {
			Pattern, Path string
			Covered       bool
		}
	}
	assert.NoError(t, json.Unmarshal(text, &cases))
	assert.True(t, len(cases.Paths) > 10, "got %d cases", len(cases.Paths))
	for _, tt := range cases.Paths {
		e := Endpoint{Path: tt.Pattern}
		assert.Equal(t, e.Covers(http.MethodPost, tt.Path), tt.Covered, "%s of %s", tt.Path, tt.Pattern)
		e.Methods = []string{http.MethodPost}
		assert.Equal(t, e.Covers(http.MethodPost, tt.Path), tt.Covered, "POST %s of %s", tt.Path, tt.Pattern)
		assert.True(t, !e.Covers(http.MethodGet, tt.Path), "%s by another method", tt.Pattern)
	}
}
