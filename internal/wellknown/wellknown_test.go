package wellknown

import (
	"net/http"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"/payments", "/payments", true},
		{"/payments", "/payments/", false},
		{"/payments", "/payments/7", false},
		{"/payments/{id}/refunds", "/payments/7/refunds", true},
		{"/payments/{id}/refunds", "/payments//refunds", false},
		{"/payments/{id}", "/payments", false},
		{"/payments/", "/payments/7/refunds", true},
		{"/payments/", "/payments/", true},
		{"/payments/{rest...}", "/payments/7/refunds", true},
		{"/payments/{$}", "/payments/", true},
		{"/payments/{$}", "/payments/7", false},
		{"/", "/payments", true},
	} {
		e := Endpoint{Path: tt.pattern}
		assert.Equal(t, e.Covers(http.MethodPost, tt.path), tt.want, "%s of %s", tt.path, tt.pattern)
		e.Methods = []string{http.MethodPost}
		assert.Equal(t, e.Covers(http.MethodPost, tt.path), tt.want, "POST %s of %s", tt.path, tt.pattern)
		assert.True(t, !e.Covers(http.MethodGet, tt.path), "%s by another method", tt.pattern)
	}
}
