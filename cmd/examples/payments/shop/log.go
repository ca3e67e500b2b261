package shop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

// requestView is a request of the log as the page shows it.
type requestView struct{ front.Entry }

// fromOutside is the request without what its client cannot know: what the
// processes say of it.
func (v requestView) fromOutside() requestView {
	v.Outcome, v.Lines = "", nil
	return v
}

// Answer is the status, or why there is none.
func (v requestView) Answer() string {
	switch {
	case v.Status != 0:
		return fmt.Sprint(v.Status)
	case v.Ended:
		return "no answer"
	default:
		return "on its way"
	}
}

// Class is the first digit of the status, 0 if there was no answer, and empty
// while there may be one.
func (v requestView) Class() string {
	switch {
	case v.Status != 0:
		return fmt.Sprint(v.Status / 100)
	case v.Ended:
		return "0"
	default:
		return ""
	}
}

// Log is what the processes logged.
func (v requestView) Log() []string {
	lines := make([]string, len(v.Lines))
	for i, line := range v.Lines {
		lines[i] = plain(line)
	}
	return lines
}

// plain writes a line of JSON as who says it, what, and name=value pairs in their
// order, without what the page shows anyhow, what is empty and the everyday
// levels. Any other line stays as it is.
func plain(line string) string {
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return line
	}
	var process, message string
	var pairs []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return line
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return line
		}
		text := bare(value)
		switch {
		case name == "time", name == "request", text == "", name == "level" && (text == "INFO" || text == "DEBUG"):
		case name == "process":
			process = text + ": "
		case name == "msg":
			message = text
		default:
			pairs = append(pairs, fmt.Sprintf("%v=%s", name, text))
		}
	}
	return process + strings.Join(append([]string{message}, pairs...), " ")
}

// bare is a JSON value without the quotes that nothing in it needs.
func bare(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil || strings.ContainsAny(text, "\"\n\r\t\\") {
		return string(bytes.TrimSpace(value))
	}
	return text
}
