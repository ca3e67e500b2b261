package front

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

const (
	// maxName is the longest customer or order that a door takes, in bytes. It
	// is more than MaxCustomer, so that the door with Semel can say its own.
	maxName = 1 << 10
	// shownBytes is how much the log keeps of what a client sent, in bytes.
	shownBytes = 200
	// LineBytes is the longest line that the log keeps whole.
	LineBytes = 2 << 10
	// LogBytes is how long the whole log may be, as JSON: the page reads 1 MiB.
	LogBytes = 768 << 10
	// laterBytes is room for what an entry is told after it was begun.
	laterBytes = 256
)

// oversize refuses names that nobody has: they would be kept in the log and in
// the order book.
func oversize(h http.Header) *payments.Problem {
	for _, name := range []string{payments.HeaderCustomer, payments.HeaderOrder} {
		for _, value := range h.Values(name) {
			if len(value) <= maxName {
				continue
			}
			p := payments.NewProblem(http.StatusRequestHeaderFieldsTooLarge, "header-too-large",
				fmt.Sprintf("%s has %d bytes; the most is %d", name, len(value), maxName))
			p.Field = name
			return p
		}
	}
	return nil
}

// cut returns the beginning of s, marked if there was more. It is a copy: s may
// be a part of a request line that is much longer.
func cut(s string) string {
	if len(s) <= shownBytes {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:shownBytes], "") + "…"
}

// cutLine returns the line of request id, or one that tells its beginning if it
// is too long to keep.
func cutLine(id int64, line string) string {
	if len(line) <= LineBytes {
		return line
	}
	var said struct {
		Process string `json:"process"`
		Msg     string `json:"msg"`
	}
	_ = json.Unmarshal([]byte(line), &said) // what is no JSON says nothing
	return lineOf(cut(said.Process), id, cut(said.Msg), slog.Int("bytes_left_out", len(line)))
}

// fit forgets the oldest requests while the log is too long, under mu.
func (l *Log) fit() {
	for len(l.entries) > LogRequests || l.bytes > LogBytes && len(l.entries) > 1 {
		l.bytes -= l.entries[0].size
		l.entries[0] = nil // the array behind outlives it
		l.entries = l.entries[1:]
	}
}
