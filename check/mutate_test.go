package check

import (
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestChanged(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, pointer, want string }{
		{"The first number or string is changed", `{ "a" : [null,true,2500], "b":"x"}`, "", `{ "a" : [null,true,2501], "b":"x"}`},
		{"A value is changed where the pointer says", `{"a":1,"b":{"c~/":"r_123"}}`, "/b/c~0~1", `{"a":1,"b":{"c~/":"r_122"}}`},
		{"A boolean is turned where it is named", `{"a":false}`, "/a", `{"a":true}`},
		{"An element is named by its place", `[1,2,3]`, "/1", `[1,1,3]`},
		{"A name is not taken for a value", `{"amount":{"value":"AB"}}`, "", `{"amount":{"value":"AA"}}`},
		{"An escape stays whole", `{"a":"x\u00e9"}`, "", `{"a":"w\u00e9"}`},
		{"A fraction keeps its form", `{"a":-0.10}`, "", `{"a":-0.11}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := changed([]byte(tt.body), tt.pointer)
			assert.NoError(t, err)
			assert.Equal(t, string(got), tt.want)
		})
	}
	for body, says := range map[string]string{
		`{"a":null}`: "no number or string",
		`a=1&b=2`:    "no JSON",
		``:           "no number or string",
	} {
		_, err := changed([]byte(body), "")
		assert.True(t, err != nil, "an error for", body)
		assert.Contains(t, err.Error(), says)
	}
	_, err := changed([]byte(`{"a":1}`), "/b")
	assert.Contains(t, err.Error(), `nothing at "/b"`)
	_, err = changed([]byte(`{"a":null}`), "/a")
	assert.Contains(t, err.Error(), "is no number, string or boolean")
}
