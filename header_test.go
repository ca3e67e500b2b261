package semel_test

import (
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestHeaderText(t *testing.T) {
	t.Parallel()
	t.Run("is one line for each value, sorted by name, and reads back", func(t *testing.T) {
		t.Parallel()
		h := semel.Header{
			"X-Empty":      {""},
			"Content-Type": {"application/json"},
			"Link":         {"</b>; rel=next", "</a>; rel=prev"},
			"X-Odd":        {" two: colons: and spaces ", "\x00\xff é"},
		}
		text, err := h.MarshalText()
		assert.NoError(t, err)
		assert.Equal(t, string(text), "Content-Type: application/json\n"+
			"Link: </b>; rel=next\nLink: </a>; rel=prev\n"+
			"X-Empty: \n"+
			"X-Odd:  two: colons: and spaces \nX-Odd: \x00\xff é\n")
		var back semel.Header
		assert.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, back, h)
	})
	t.Run("reads back the values of one name together, wherever their lines stand", func(t *testing.T) {
		t.Parallel()
		var back semel.Header
		assert.NoError(t, back.UnmarshalText([]byte("A: 1\nB: 2\nA: 3\nA: 4\nC: 5")))
		assert.Equal(t, back, semel.Header{"A": {"1", "3", "4"}, "B": {"2"}, "C": {"5"}})
	})
	t.Run("has a space for each line break in a value, so that no value becomes a field", func(t *testing.T) {
		t.Parallel()
		text, err := semel.Header{"X": {"a\r\nSet-Cookie: stolen\nb\rc"}}.MarshalText()
		assert.NoError(t, err)
		var back semel.Header
		assert.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, back, semel.Header{"X": {"a  Set-Cookie: stolen b c"}})
	})
	t.Run("of no header is empty, and reads back as none over what was there", func(t *testing.T) {
		t.Parallel()
		text, err := semel.Header(nil).MarshalText()
		assert.NoError(t, err)
		assert.Equal(t, len(text), 0)
		old := semel.Header{"X": {"old"}}
		assert.NoError(t, old.UnmarshalText(text))
		assert.True(t, old == nil, "got %v, want none", old)
	})
	for _, name := range []string{"", "a:b", "a\nb", "a\rb"} {
		t.Run(fmt.Sprintf("refuses the name %q, which could not be read back", name), func(t *testing.T) {
			t.Parallel()
			_, err := semel.Header{name: {"value"}}.MarshalText()
			if err == nil {
				t.Fatal("got no error, want one")
			}
			assert.Contains(t, err.Error(), "cannot be saved")
		})
	}
	t.Run("is refused where a line has no colon", func(t *testing.T) {
		t.Parallel()
		err := new(semel.Header).UnmarshalText([]byte("A: 1\nno field\n"))
		if err == nil {
			t.Fatal("got no error, want one that names the line")
		}
		assert.Contains(t, err.Error(), `"no field\n"`)
	})
}

func FuzzHeaderText(f *testing.F) {
	f.Add("Name", "value", "other")
	f.Add("A:", "a\nb: c", "\r")
	f.Fuzz(func(t *testing.T, name, value, second string) {
		text, err := semel.Header{name: {value, second}}.MarshalText()
		if err != nil {
			return // the name
		}
		var back semel.Header
		assert.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, len(back[name]), 2, "values of %q in %q", name, text)
		again, err := back.MarshalText()
		assert.NoError(t, err)
		assert.Equal(t, string(again), string(text))
	})
}
