package check

import (
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestCountAt(t *testing.T) {
	t.Parallel()
	body := `{"keyed":{"charges":7,"list":[1,2,3]},"a/b":[{"n":2}],"text":"x"}`
	for pointer, want := range map[string]int{"/keyed/charges": 7, "/keyed/list": 3, "/a~1b/0/n": 2} {
		got, err := countAt([]byte(body), pointer)
		assert.NoError(t, err, pointer)
		assert.Equal(t, got, want, pointer)
	}
	got, err := countAt([]byte(`[1,2]`), "")
	assert.NoError(t, err)
	assert.Equal(t, got, 2)
	for pointer, says := range map[string]string{"/nothing": "nothing at", "/text": "neither a number nor an array", "/a~1b/9": "nothing at", "/text/x": "nothing at"} {
		_, err := countAt([]byte(body), pointer)
		assert.Contains(t, err.Error(), says, pointer)
	}
	_, err = countAt([]byte("<html>"), "/a")
	assert.Contains(t, err.Error(), "no JSON")
}
