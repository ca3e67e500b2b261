package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// changed returns a body that differs from body in the one value at pointer
// (RFC 6901), every other byte being the same. An empty pointer means the first
// number or string.
func changed(body []byte, pointer string) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		value, err := nextScalar(dec)
		if errors.Is(err, io.EOF) {
			return nil, notThere(pointer)
		}
		if err != nil {
			return nil, fmt.Errorf("check: the body is no JSON that could be changed in one value, so give another body: %w", err)
		}
		if pointer != "" && string(dec.StackPointer()) != pointer {
			continue
		}
		other := otherValue(value, pointer != "")
		if other == "" {
			if pointer == "" {
				continue
			}
			return nil, fmt.Errorf("check: the value at %q is no number, string or boolean", pointer)
		}
		end := dec.InputOffset()
		return splice(body[:end-int64(len(value))], other, body[end:]), nil
	}
}

func splice(before []byte, middle string, after []byte) []byte {
	return []byte(string(before) + middle + string(after))
}

// nextScalar reads up to the next value that is no object, array or name.
func nextScalar(dec *jsontext.Decoder) (jsontext.Value, error) {
	for {
		switch dec.PeekKind() {
		case '"', '0', 't', 'f', 'n':
			within, n := dec.StackIndex(dec.StackDepth())
			value, err := dec.ReadValue()
			if isName := within == '{' && n%2 == 0; err != nil || !isName {
				return value, err
			}
		default:
			if _, err := dec.ReadToken(); err != nil {
				return nil, err
			}
		}
	}
}

// otherValue returns another value of the same kind and length, or "" for what
// is not to be changed. A number or string that is alike is most likely good
// for the API as well.
func otherValue(value jsontext.Value, named bool) string {
	text := string(value)
	switch value.Kind() {
	case 't':
		if named {
			return "false"
		}
	case 'f':
		if named {
			return "true"
		}
	case '0':
		return turnLast(text, isDigit)
	case '"':
		return turnLast(text, isLetterOrDigit)
	}
	return ""
}

// turnLast replaces the last byte that fits by its neighbour in the alphabet.
func turnLast(text string, fits func(byte) bool) string {
	for i := len(text) - 1; i >= 0; i-- {
		c := text[i]
		if !fits(c) || escaped(text, i) {
			continue
		}
		if c == '0' || c == 'a' || c == 'A' {
			c++
		} else {
			c--
		}
		return text[:i] + string(c) + text[i+1:]
	}
	return ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetterOrDigit(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// escaped reports whether byte i of a JSON string belongs to an escape.
func escaped(text string, i int) bool {
	return strings.LastIndexByte(text[max(0, i-5):i], '\\') >= 0
}

func notThere(pointer string) error {
	if pointer == "" {
		return errors.New("check: the body holds no number or string to change, so give another body")
	}
	return fmt.Errorf("check: the body has nothing at %q", pointer)
}
