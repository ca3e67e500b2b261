package semel

import (
	"bytes"
	"encoding"
	"fmt"
	"slices"
	"strings"
)

// Header is the header of a saved reply: canonical field names, each with its
// values in order. A name that is empty, or has a colon or a line break in it,
// cannot be saved.
type Header map[string][]string

var (
	_ encoding.TextMarshaler   = Header(nil)
	_ encoding.TextUnmarshaler = (*Header)(nil)
)

// headerLine replaces what cannot stand inside a line, as net/http does when
// it writes a field.
var headerLine = strings.NewReplacer("\r", " ", "\n", " ")

// MarshalText returns the header as lines "Name: value", sorted by name, so
// that a person can read the stored column. Values may hold any bytes but line
// breaks, which become spaces; a name that could not be read back is an error.
func (h Header) MarshalText() ([]byte, error) {
	var few [16]string // enough for most, so that the text is all that is allocated
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	text := make([]byte, 0, h.size())
	for _, name := range names {
		if err := checkHeaderName(name); err != nil {
			return nil, err
		}
		for _, value := range h[name] {
			text = append(text, name...)
			text = append(text, ": "...)
			text = append(text, headerLine.Replace(value)...)
			text = append(text, '\n')
		}
	}
	return text, nil
}

// size is the length of what MarshalText returns.
func (h Header) size() int64 {
	size := 0
	for name, values := range h {
		for _, value := range values {
			size += len(name) + len(": ") + len(value) + len("\n")
		}
	}
	return int64(size)
}

// check returns the error that MarshalText would.
func (h Header) check() error {
	for name := range h {
		if err := checkHeaderName(name); err != nil {
			return err
		}
	}
	return nil
}

func checkHeaderName(name string) error {
	if name == "" || strings.ContainsAny(name, ":\r\n") {
		return fmt.Errorf("semel: header name %q cannot be saved", name)
	}
	return nil
}

// UnmarshalText reads what MarshalText wrote. A line without a colon is an
// error.
func (h *Header) UnmarshalText(text []byte) error {
	*h = nil
	values := make([]string, 0, bytes.Count(text, []byte{'\n'})) // one array for all
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			return fmt.Errorf("semel: saved header line %q has no colon", line)
		}
		if *h == nil {
			*h = make(Header, cap(values))
		}
		if earlier := (*h)[name]; earlier != nil {
			(*h)[name] = append(earlier, value)
			continue
		}
		values = append(values, value)
		(*h)[name] = slices.Clip(values[len(values)-1:])
	}
	return nil
}
