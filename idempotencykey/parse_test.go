package idempotencykey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotencykey"
	"github.com/semel-dev/semel/internal/assert"
)

// key parses one field value in the way that takes bare keys.
func key(t *testing.T, value string) string {
	t.Helper()
	got, err := idempotencykey.Parse([]string{value}, false)
	assert.NoError(t, err, "%q", value)
	return got
}

// refuses checks that values are no key, in either way of reading, and that
// the reason has text in it and does not repeat the value.
func refuses(t *testing.T, values []string, text string) {
	t.Helper()
	for _, strict := range []bool{false, true} {
		got, err := idempotencykey.Parse(values, strict)
		assert.ErrorIs(t, err, semel.ErrKeyInvalid, "%q strict=%v", values, strict)
		assert.Equal(t, got, "", "%q strict=%v", values, strict)
		if !strict {
			assert.Contains(t, err.Error(), text, "%q", values)
		}
		var typed *semel.Error
		assert.True(t, errors.As(err, &typed), "%T is not a semel.Error", err)
		if len(values[0]) > 8 {
			assert.True(t, !strings.Contains(err.Error(), values[0]), "the error repeats the value: %v", err)
		}
	}
}

// Case C53.
func TestKeySyntax(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("k", n) }

	t.Run("an absent key is not an invalid one", func(t *testing.T) {
		t.Parallel()
		for _, values := range [][]string{nil, {}} {
			_, err := idempotencykey.Parse(values, false)
			assert.ErrorIs(t, err, idempotencykey.ErrMissing)
			assert.True(t, !errors.Is(err, semel.ErrKeyInvalid), "missing must not match ErrKeyInvalid")
		}
	})
	t.Run("an empty or blank key is invalid and not absent", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{"", "   ", `""`, `"   "`, `"";p=1`, `" "  `} {
			refuses(t, []string{value}, "empty")
			_, err := idempotencykey.Parse([]string{value}, false)
			assert.True(t, !errors.Is(err, idempotencykey.ErrMissing), "%q counts as missing", value)
		}
	})
	t.Run("1 and 255 characters are a key in either form", func(t *testing.T) {
		t.Parallel()
		for _, want := range []string{"k", long(255)} {
			assert.Equal(t, key(t, want), want)
			assert.Equal(t, key(t, `"`+want+`"`), want)
		}
	})
	t.Run("256 and 10000 characters are too many and the error says how many are allowed", func(t *testing.T) {
		t.Parallel()
		for _, n := range []int{256, 10_000} {
			refuses(t, []string{long(n)}, "the most is 255")
			refuses(t, []string{`"` + long(n) + `"`}, "the most is 255")
		}
	})
	t.Run("the limit counts the decoded key, not its escapes", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, key(t, `"`+strings.Repeat(`\"`, 255)+`";p="`+long(300)+`"`), strings.Repeat(`"`, 255))
		refuses(t, []string{`"` + strings.Repeat(`\"`, 256) + `"`}, "has 256 characters")
	})
	t.Run("a repeated key is invalid, also when the values are equal", func(t *testing.T) {
		t.Parallel()
		refuses(t, []string{"k1", "k1"}, "sent 2 times")
		refuses(t, []string{`"foo`, `bar"`}, "sent 2 times")
		refuses(t, []string{"k1", ""}, "sent 2 times")
		refuses(t, []string{"k1, k1"}, "comma at character 3")
		refuses(t, []string{`"k1", "k1"`}, "not one RFC 9651 string")
	})
	t.Run("what a bare key may not have is named with its place", func(t *testing.T) {
		t.Parallel()
		for value, text := range map[string]string{
			"a b":           "a space at character 2",
			"ab,c":          "a comma at character 3",
			`a"b`:           "a double quote at character 2",
			"abc;p=1":       "a semicolon at character 4",
			`a\b`:           "a backslash at character 2",
			"a\tb":          "0x09 at character 2",
			"\tab":          "0x09 at character 1",
			"ab\x7f":        "0x7F at character 3",
			"caf\u00e9":     "0xC3 at character 4",
			"a\x00":         "0x00 at character 2",
			"\u00a0k\ufeff": "0xC2 at character 1",
		} {
			refuses(t, []string{value}, text)
		}
	})
	t.Run("every other visible character may stand in a bare key", func(t *testing.T) {
		t.Parallel()
		want := ""
		for c := '!'; c <= '~'; c++ {
			if !strings.ContainsRune(`,";\`, c) {
				want += string(c)
			}
		}
		assert.Equal(t, len(want), 90)
		assert.Equal(t, key(t, want), want)
	})
}

// Case C55.
func TestKeyEncoding(t *testing.T) {
	t.Parallel()
	t.Run("quoted, bare, parameterised and padded forms are one key", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{"abc", `"abc"`, `"abc";p=1`, `"abc"; p`, " abc ", `  "abc"  `} {
			assert.Equal(t, key(t, value), "abc", "%q", value)
		}
	})
	t.Run("an escaped quote is part of the key", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, key(t, `"a\"b"`), `a"b`)
	})
	t.Run("case is part of the key", func(t *testing.T) {
		t.Parallel()
		assert.True(t, key(t, "ABC") != key(t, "abc"))
	})
	t.Run("an unclosed string is an error and never a missing key", func(t *testing.T) {
		t.Parallel()
		refuses(t, []string{`"ab`}, "not one RFC 9651 string")
	})
	t.Run("strict takes the string and refuses the bare value", func(t *testing.T) {
		t.Parallel()
		got, err := idempotencykey.Parse([]string{`"abc"`}, true)
		assert.NoError(t, err)
		assert.Equal(t, got, "abc")
		_, err = idempotencykey.Parse([]string{"abc"}, true)
		assert.ErrorIs(t, err, semel.ErrKeyInvalid)
		assert.Contains(t, err.Error(), "double quotes")
	})
}
