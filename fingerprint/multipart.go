package fingerprint

import (
	"bytes"
	"slices"
	"strings"

	"github.com/semel-dev/semel/internal/httpfield"
)

// Limits of a multipart body that is compared by its parts.
const (
	maxBoundary    = 70 // RFC 2046 section 5.1.1
	maxPartHeaders = 32
)

// readMultipart gives c the meaning of a multipart body: its parts in order,
// each with its headers and bytes, whatever the boundary between them. Only the
// plain form is read: no preamble, nothing after the end, no folded headers.
// The boundary of a multipart nested in a part is bytes of that part.
func (d *digester) readMultipart(body []byte, c *content) {
	i := slices.IndexFunc(c.params, func(p param) bool { return p.name == "boundary" })
	if i < 0 {
		return
	}
	boundary := c.params[i].value
	if len(boundary) == 0 || len(boundary) > maxBoundary || strings.ContainsAny(boundary, "\\\r\n") {
		return
	}
	if !d.parts(body, "--"+boundary) {
		d.drop()
		return
	}
	c.kind, c.sum = kindMultipart, d.sum()
	c.params = slices.Delete(c.params, i, i+1)
}

// parts adds the parts of a body and reports whether it was well formed.
func (d *digester) parts(body []byte, dashBoundary string) bool {
	rest, ok := bytes.CutPrefix(body, []byte(dashBoundary))
	delimiter := []byte("\r\n" + dashBoundary)
	for ok {
		next, more := bytes.CutPrefix(rest, []byte("\r\n"))
		if !more {
			return string(rest) == "--" || string(rest) == "--\r\n"
		}
		var part []byte
		part, rest, ok = bytes.Cut(next, delimiter)
		ok = ok && d.part(part)
	}
	return false
}

// part adds one part and reports whether its headers could be read.
func (d *digester) part(part []byte) bool {
	var params [4]param
	head, body, ok := bytes.Cut(part, []byte("\r\n\r\n"))
	if after, bare := bytes.CutPrefix(part, []byte("\r\n")); bare {
		head, body, ok = nil, after, true
	}
	if !ok {
		return false
	}
	headers, ok := partHeaders(head)
	if !ok {
		return false
	}
	d.flag(true)
	d.number(len(headers))
	for _, h := range headers {
		d.field(h.name)
		kind, values, typed := "", params[:0], false
		if h.name == "content-disposition" || h.name == "content-type" {
			kind, values, typed = parseTyped(h.value, values)
		}
		d.flag(typed)
		if typed {
			d.typed(kind, values)
		} else {
			d.field(h.value)
		}
	}
	d.block(body)
	return true
}

// partHeaders returns a part's headers sorted by name, those of one name in
// their order.
func partHeaders(head []byte) ([]param, bool) {
	if len(head) == 0 {
		return nil, true
	}
	var headers []param
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpfield.IsToken(name) || strings.ContainsFunc(value, isControl) || len(headers) == maxPartHeaders {
			return nil, false
		}
		headers = append(headers, param{strings.ToLower(name), httpfield.Trim(value)})
	}
	slices.SortStableFunc(headers, param.compare)
	return headers, true
}

// isControl reports whether r may not stand in a header's value: a lone CR or
// LF would be a line end to some readers.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
