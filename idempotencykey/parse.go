// Package idempotencykey reads the Idempotency-Key request header
// (draft-ietf-httpapi-idempotency-key-header-07).
//
// One value gives one key wherever it is read: middleware, proxy and client
// share this package. The draft's form is an RFC 9651 string in double quotes;
// most clients send the bare value instead. Both forms of one text are one
// key. What cannot be read is an error and never counts as "no key": a typing
// mistake must not switch the protection off.
package idempotencykey

import (
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/semel-dev/semel"
)

// CodeMissing is the code of ErrMissing.
const CodeMissing semel.Code = "key_missing"

// ErrMissing is returned for a request without the header. It does not match
// semel.ErrKeyInvalid: where the key is optional, a missing one is no mistake.
var ErrMissing = &semel.Error{Code: CodeMissing, Text: "there is no key"}

// Parse returns the key in values, the header's field values as received: one
// for each line, http.Header["Idempotency-Key"].
//
// A key has 1 to semel.MaxKeyLength characters, counted after quotes and
// escapes are gone, all visible ASCII; spaces stand only inside quotes, and
// not alone. Parameters after a quoted key are ignored. A bare key, refused if
// strict is set, has no space, comma, quote, semicolon or backslash. Spaces
// around either form are not part of it (RFC 9651 section 4.2).
//
// The error is ErrMissing if there is no value at all, and otherwise a
// semel.Error that matches semel.ErrKeyInvalid. Its Text says what is wrong
// and where, and does not repeat the key.
func Parse(values []string, strict bool) (string, error) {
	switch len(values) {
	case 0:
		return "", ErrMissing
	case 1:
	default:
		return "", invalid("the key is sent %d times; it must be sent once", len(values))
	}
	value := strings.Trim(values[0], " ")
	if value == "" {
		return "", invalid("the key is empty")
	}
	key, err := unwrap(value, strict)
	if err != nil {
		return "", err
	}
	switch {
	case len(key) > semel.MaxKeyLength:
		return "", invalid("the key has %d characters; the most is %d", len(key), semel.MaxKeyLength)
	case strings.Trim(key, " ") == "":
		return "", invalid("the key is empty or only spaces")
	}
	return key, nil
}

// unwrap reads the text of either form.
func unwrap(value string, strict bool) (string, error) {
	if value[0] != '"' {
		if strict {
			return "", invalid("the key is not in double quotes, and here it must be an RFC 9651 string")
		}
		return bare(value)
	}
	if text, ok := plainString(value); ok {
		return text, nil
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", invalid("the key is not one RFC 9651 string: %v", err)
	}
	text, _ := item.Value.(string) // an item that starts with a quote is one
	return text, nil
}

// bare checks a value without quotes.
func bare(value string) (string, error) {
	for i := range len(value) {
		switch c := value[i]; {
		case c == ',':
			return "", invalid("the key has a comma at character %d: send one key, or put it in double quotes", i+1)
		case c == ' ', c == '"', c == ';', c == '\\':
			return "", invalid("the key has a %s at character %d, which may stand only inside double quotes", charNames[c], i+1)
		case c < ' ' || c >= 0x7f:
			return "", invalid("the key has the byte 0x%02X at character %d; only visible ASCII is allowed", c, i+1)
		}
	}
	return value, nil
}

var charNames = map[byte]string{' ': "space", '"': "double quote", ';': "semicolon", '\\': "backslash"}

// plainString reads the common string, one with no escape and no parameter,
// without allocating. Everything else is left to the library.
func plainString(value string) (string, bool) {
	last := len(value) - 1
	if last < 1 || value[last] != '"' {
		return "", false
	}
	text := value[1:last]
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return "", false
		}
	}
	return text, true
}

func invalid(format string, args ...any) error {
	return semel.NewError(semel.CodeKeyInvalid, nil, format, args...)
}
