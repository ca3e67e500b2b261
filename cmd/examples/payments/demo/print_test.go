package demo

import (
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestALineDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`bank: {"answer":"taken"}`: `bank: {"answer":"taken"}`,
		"café\tüber €":             "café\tüber €",
		"red \x1b[31m":             `red \u001b[31m`,
		"red \u009b31m":            `red \u009b31m`,
		"two\r\nlines":             `two\u000d\u000alines`,
		"turned \u202e round":      `turned \u202e round`,
		"a tag \U000e0041":         `a tag \udb40\udc41`,
		"no text \x9b":             "no text \ufffd",
	} {
		assert.Equal(t, harmless(line), want)
	}
}
