package httpfield_test

import (
	"slices"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/httpfield"
)

func TestAToken(t *testing.T) {
	t.Parallel()
	t.Run("has letters, digits and fifteen signs, and no other byte", func(t *testing.T) {
		t.Parallel()
		const signs = "!#$%&'*+-.^_`|~" // RFC 9110 section 5.6.2
		count := 0
		for b := range 256 {
			if httpfield.IsToken(string([]byte{'a', byte(b)})) {
				count++
			}
		}
		assert.Equal(t, count, 26+26+10+len(signs))
		assert.True(t, httpfield.IsToken("aZ09"+signs))
	})
	t.Run("is not empty", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, httpfield.IsToken(""), false)
	})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	t.Run("are those of all lines, trimmed, in lower case and without the empty ones", func(t *testing.T) {
		t.Parallel()
		got := slices.Collect(httpfield.Members([]string{" GZIP ,\tbr", ",", "", "Close"}))
		assert.Equal(t, got, []string{"gzip", "br", "close"})
	})
	t.Run("end when enough were seen", func(t *testing.T) {
		t.Parallel()
		for member := range httpfield.Members([]string{"a, b"}) {
			assert.Equal(t, member, "a")
			break
		}
	})
}

func TestFieldsOfAConnection(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"Connection": true, "Te": true, "Content-Type": false, "": false} {
		assert.Equal(t, httpfield.IsOfConnection(name), want, "%q", name)
	}
}
