package fingerprint

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/semel-dev/semel"
)

// kind says by which rule a body was read. It is part of the meaning, so that
// two bodies read by different rules are never the same.
type kind byte

const (
	kindEmpty     kind = 'E' // no body; its type describes nothing
	kindBytes     kind = 'B'
	kindJSON      kind = 'J'
	kindMultipart kind = 'M'
)

// content is the meaning of a body.
type content struct {
	kind   kind
	sum    semel.Digest
	typed  bool    // whether the media type could be read
	media  string  // type/subtype in lower case
	params []param // without those that kind takes care of
}

// meaningOf reads r's body by its type. Whatever does not hold to the rules
// of its type is bytes, whose digest is sent.
func (d *digester) meaningOf(r Request, sent semel.Digest) content {
	if len(r.Body) == 0 {
		return content{kind: kindEmpty}
	}
	c := content{kind: kindBytes, sum: sent}
	if types := r.Header["Content-Type"]; len(types) == 1 {
		c.media, c.params, c.typed = parseTyped(types[0], d.params[:0])
		c.typed = c.typed && strings.Contains(c.media, "/")
		d.params = c.params
	}
	if !c.typed || encoded(r.Header["Content-Encoding"]) {
		return c
	}
	switch {
	case isJSON(c.media):
		d.readJSON(r.Body, &c)
	case strings.HasPrefix(c.media, "multipart/"):
		d.readMultipart(r.Body, &c)
	}
	return c
}

// content adds c to a meaning.
func (d *digester) content(r Request, c content) {
	d.frame = append(d.frame, byte(c.kind))
	if c.kind == kindEmpty {
		return
	}
	d.digest(c.sum)
	d.flag(c.typed)
	if c.typed {
		d.typed(c.media, c.params)
	} else {
		d.list(r.Header["Content-Type"])
	}
	for coding := range codings(r.Header["Content-Encoding"]) {
		d.field(coding)
	}
}

// isJSON reports whether a media type is JSON by name or by suffix
// (RFC 6839 section 3.1).
func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// asWritten has members sorted and strings in their shortest form (RFC 8785),
// but numbers as they were written: rounding them would make two amounts one.
// Doubled names, bad UTF-8 and lone surrogates are refused (RFC 7493).
var asWritten = []jsontext.Options{
	jsontext.ReorderRawObjects(true),
	jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(false),
}

// maxDepth bounds nested JSON. Sorting copies each object once for every
// level around it, so that depth times size is the cost of a body.
const maxDepth = 128

// readJSON gives c the meaning of a JSON text in UTF-8 that all readers read
// alike.
func (d *digester) readJSON(text []byte, c *content) {
	charset := slices.IndexFunc(c.params, func(p param) bool { return p.name == "charset" })
	if charset >= 0 && c.params[charset].value != "utf-8" || deeperThan(text, maxDepth) {
		return
	}
	canonical, err := jsontext.AppendFormat(d.text[:0], text, asWritten...)
	d.text = canonical
	if err != nil || d.foldTwins(canonical) {
		return
	}
	c.kind, c.sum = kindJSON, d.sumOf(canonical)
	if charset >= 0 {
		c.params = slices.Delete(c.params, charset, charset+1)
	}
}

// deeperThan reports whether brackets outside strings nest more than limit
// deep. It may say so of a text that is not JSON.
func deeperThan(text []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
