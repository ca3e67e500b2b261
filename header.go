package semel

import (
	"bytes"
	"encoding"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Header is the header of a saved reply: canonical field names, each with its
// values in order.
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
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == "" || strings.ContainsAny(name, ":\r\n") {
			return nil, fmt.Errorf("semel: header name %q cannot be saved", name)
		}
		for _, value := range h[name] {
			b.WriteString(name)
			b.WriteString(": ")
			b.WriteString(headerLine.Replace(value))
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// UnmarshalText reads what MarshalText wrote. A line without a colon is an
// error.
func (h *Header) UnmarshalText(text []byte) error {
	*h = nil
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			return fmt.Errorf("semel: saved header line %q has no colon", line)
		}
		if *h == nil {
			*h = Header{}
		}
		(*h)[name] = append((*h)[name], value)
	}
	return nil
}
