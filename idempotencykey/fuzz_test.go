package idempotencykey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotencykey"
	"github.com/semel-dev/semel/internal/assert"
)

// FuzzParse holds the parser, with its short cuts, against the library's and
// the rule for bare values written a second time.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "abc", `"abc"`, `"a\"b"; p=1`, "k1, k1", "\t\"x\"", `"` + strings.Repeat("k", 256) + `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		want, isString := oracle(value)
		got, err := idempotencykey.Parse([]string{value}, true)
		checkParse(t, got, err, want, isString)

		wantBare, isBare := bareOracle(value)
		got, err = idempotencykey.Parse([]string{value}, false)
		if isBare {
			checkParse(t, got, err, wantBare, true)
		} else {
			checkParse(t, got, err, want, isString)
		}
		if err != nil {
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(got) + `"`
		again, err := idempotencykey.Parse([]string{quoted}, true)
		checkParse(t, again, err, got, true)
	})
}

func checkParse(t *testing.T, got string, err error, want string, ok bool) {
	t.Helper()
	if !ok {
		assert.ErrorIs(t, err, semel.ErrKeyInvalid)
		assert.True(t, !errors.Is(err, idempotencykey.ErrMissing), "a value counts as missing")
		return
	}
	assert.NoError(t, err)
	assert.Equal(t, got, want)
}

func oracle(value string) (string, bool) {
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", false
	}
	text, ok := item.Value.(string)
	return text, ok && len(text) <= 255 && strings.ContainsFunc(text, func(r rune) bool { return r != ' ' })
}

func bareOracle(value string) (string, bool) {
	value = strings.Trim(value, " ")
	for _, r := range value {
		if r <= ' ' || r > '~' || strings.ContainsRune(`,";\`, r) {
			return "", false
		}
	}
	return value, value != "" && len(value) <= 255
}
