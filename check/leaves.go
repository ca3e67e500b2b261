package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locationLeaf is the name of the Location field among the leaves of a reply.
const locationLeaf = "Location"

// leaves returns the single values of a reply by where they stand: a JSON
// pointer, "body" for all of a body that is not JSON, or "Location".
func leaves(x Exchange) map[string]string {
	found := make(map[string]string)
	if location := x.ReplyHeader.Get(locationLeaf); location != "" {
		found[locationLeaf] = location
	}
	dec := json.NewDecoder(bytes.NewReader(x.ReplyBody))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.Decode(new(any)) != io.EOF { //nolint:errorlint // the decoder's own end
		if len(x.ReplyBody) > 0 {
			found["body"] = string(x.ReplyBody)
		}
		return found
	}
	flatten(found, "", v)
	return found
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func flatten(into map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(into, at+"/"+pointerEscaper.Replace(name), member)
		}
	case []any:
		for i, element := range v {
			flatten(into, at+"/"+strconv.Itoa(i), element)
		}
	case string:
		into[at] = v
	case json.Number:
		into[at] = v.String()
	}
}

// marks are the leaves that tell executions apart: they differ among replies to
// several executions of one request, and are no echo of it.
type marks struct {
	names []string // times last: they may be those of the reply, not of the work
	times int      // how many of them are times
}

// newMarks finds the marks in replies to requests that were executed each.
func newMarks(executed []Exchange, ignore []string) marks {
	all := make([]map[string]string, len(executed))
	for i, x := range executed {
		all[i] = leaves(x)
	}
	var ids, times []string
	for name := range all[0] {
		if slices.Contains(ignore, name) || !distinct(all, name) || echoed(executed[0], all[0][name]) {
			continue
		}
		if isTime(all[0][name]) {
			times = append(times, name)
			continue
		}
		ids = append(ids, name)
	}
	slices.Sort(ids)
	slices.Sort(times)
	return marks{names: append(ids, times...), times: len(times)}
}

func distinct(all []map[string]string, name string) bool {
	seen := make(map[string]bool)
	for _, reply := range all {
		value, has := reply[name]
		if !has || seen[value] {
			return false
		}
		seen[value] = true
	}
	return true
}

// echoed reports whether a value of a reply comes out of its request: it is one
// of the request's own, or too long to stand in it by chance.
func echoed(x Exchange, value string) bool {
	const long = 6
	own := leaves(Exchange{ReplyBody: x.Body})
	if slices.Contains(slices.Collect(maps.Values(own)), value) {
		return true
	}
	if len(value) < long {
		return false
	}
	return bytes.Contains(x.Body, []byte(value)) || slices.ContainsFunc(slices.Collect(maps.Values(x.Header)), func(lines []string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, value) })
	})
}

func isTime(value string) bool {
	for _, layout := range []string{time.RFC3339, time.RFC1123, time.DateTime} {
		if _, err := time.Parse(layout, value); err == nil {
			return true
		}
	}
	n, err := strconv.ParseFloat(value, 64)
	const year2001, year2100 = 1e9, 4.1e9
	return err == nil && (n > year2001 && n < year2100 || n > year2001*1e3 && n < year2100*1e3)
}

// likeness is what the marks of two replies say.
type likeness int

const (
	unclear likeness = iota
	sameExecution
	otherExecution
)

// compare tells whether two replies come from one execution. Where one mark is
// the same and another is not, it cannot be told: an id may be made of the key,
// and a changed one may be that of the reply alone.
func (m marks) compare(a, b Exchange) likeness {
	la, lb := leaves(a), leaves(b)
	var same, other int
	for i, name := range m.names {
		va, hasA := la[name]
		vb, hasB := lb[name]
		isTime := i >= len(m.names)-m.times
		switch {
		case !hasA || !hasB:
		case va == vb:
			same++
		case !isTime:
			other++
		}
	}
	switch {
	case same > 0 && other == 0:
		return sameExecution
	case other > 0 && same == 0:
		return otherExecution
	}
	return unclear
}

// tellApart says what replies of several executions are told apart by.
func (m marks) tellApart(kinds []Exchange) string {
	for _, name := range m.names {
		var values []string
		for _, x := range kinds {
			if value, has := leaves(x)[name]; has {
				values = append(values, short([]byte(value)))
			}
		}
		if len(values) == len(kinds) {
			const enough = 3
			more := ""
			if len(values) > enough {
				more = fmt.Sprintf(" and %d more", len(values)-enough)
				values = values[:enough]
			}
			return name + " in the replies, which is new in each execution, was " + strings.Join(values, ", ") + more
		}
	}
	return ""
}

// in reports whether a reply names an execution at all.
func (m marks) in(x Exchange) bool {
	found := leaves(x)
	return slices.ContainsFunc(m.names, func(name string) bool { _, has := found[name]; return has })
}
