package idempotencykey_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/idempotencykey"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/vectors"
)

// vector is a record in the format of github.com/httpwg/structured-field-tests.
type vector struct {
	Name       string   `json:"name"`
	Raw        []string `json:"raw"`
	HeaderType string   `json:"header_type"`
	Expected   []any    `json:"expected"`
	MustFail   bool     `json:"must_fail"`
}

func TestStructuredFields(t *testing.T) {
	t.Parallel()
	t.Run("cases of our own", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, checkVectors(t, filepath.Join("testdata", "strings.json")), 24)
	})
	t.Run("vectors of the HTTP working group", func(t *testing.T) {
		t.Parallel()
		dir := vectors.Dir(t, "structured-fields")
		checked := 0
		for _, file := range []string{"string.json", "string-generated.json", "item.json", "large-generated.json"} {
			checked += checkVectors(t, filepath.Join(dir, file))
		}
		assert.True(t, checked > 250, "only %d vectors were checked", checked)
	})
}

// checkVectors holds the parser against every item of a file and returns how
// many there were.
func checkVectors(t *testing.T, file string) (checked int) {
	t.Helper()
	text, err := os.ReadFile(file)
	assert.NoError(t, err)
	var all []vector
	assert.NoError(t, json.Unmarshal(text, &all))
	for _, v := range all {
		if v.HeaderType != "item" {
			continue
		}
		checked++
		got, err := idempotencykey.Parse(v.Raw, true)
		want, isKey := v.key()
		if !isKey {
			assert.ErrorIs(t, err, semel.ErrKeyInvalid, v.Name)
			continue
		}
		assert.NoError(t, err, v.Name)
		assert.Equal(t, got, want, v.Name)
		got, err = idempotencykey.Parse(v.Raw, false)
		assert.NoError(t, err, v.Name)
		assert.Equal(t, got, want, v.Name)
	}
	return checked
}

// key returns the key that a vector must give. On purpose a structured field
// that is a string is no key if it stands on two lines, is blank or too long.
func (v vector) key() (string, bool) {
	if v.MustFail || len(v.Raw) != 1 || len(v.Expected) == 0 {
		return "", false
	}
	text, ok := v.Expected[0].(string)
	return text, ok && strings.Trim(text, " ") != "" && len(text) <= semel.MaxKeyLength
}
