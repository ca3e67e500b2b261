package fingerprint_test

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

// FuzzJSONMeaning holds the meaning of JSON against encoding/json: two texts
// mean the same exactly if they decode to the same value, numbers as written.
func FuzzJSONMeaning(f *testing.F) {
	f.Add(`{"a":1,"b":[{"y":"\u00e9","x":-0}]}`, `{"b":[{"x":-0,"y":"é"}],"a":1}`, uint64(1))
	f.Add(`{"a":1,"a":2}`, `{"a":2}`, uint64(2))
	f.Add(`{"amount":1,"AMOUNT":900}`, `{"AMOUNT":900,"amount":1}`, uint64(4))
	f.Add(`"\ud800"`, `[1e400,1.10,9007199254740993]`, uint64(3))
	p := policy(f, fingerprint.Config{})
	f.Fuzz(func(t *testing.T, a, b string, seed uint64) {
		va, isA := decode(a)
		vb, isB := decode(b)
		if a != "" {
			assert.Equal(t, readAsJSON(t, "application/json", a), isA, "%q is JSON", a)
		}
		sameMeaning := p.Of(json(a)).Meaning == p.Of(json(b)).Meaning
		switch {
		case isA && isB:
			assert.Equal(t, sameMeaning, reflect.DeepEqual(va, vb), "%q and %q", a, b)
		default:
			assert.Equal(t, sameMeaning, a == b, "%q and %q as bytes", a, b)
		}
		if !isA {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		assert.Equal(t, p.Of(json(spell(rng, va))).Meaning, p.Of(json(a)).Meaning, "%q spelled as %q", a, spell(rng, va))
		if changed, ok := alter(rng, va); ok {
			assert.True(t, p.Of(json(spell(rng, changed))).Meaning != p.Of(json(a)).Meaning, "%q altered to %v", a, changed)
		}
	})
}

// decode reads an I-JSON text of at most 128 levels with encoding/json, which
// knows no doubled names, in whatever case, and no surrogates: those are found by
// other means.
func decode(text string) (any, bool) {
	if !utf8.ValidString(text) || !stdjson.Valid([]byte(text)) || loneSurrogate(text) {
		return nil, false
	}
	d := stdjson.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	return v, err == nil
}

var errRefused = errors.New("refused")

func decodeValue(d *stdjson.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(stdjson.Delim)
	if !ok {
		return token, nil
	}
	if depth++; depth > 128 {
		return nil, errRefused
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	members := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		for known := range members {
			if strings.EqualFold(known, name) {
				return nil, errRefused
			}
		}
		if members[name], err = decodeValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return members, err
}

// loneSurrogate looks for an escaped surrogate without its other half.
func loneSurrogate(text string) bool {
	high := false
	for i := 0; i < len(text); i++ {
		unit := -1
		if text[i] == '\\' && i+1 < len(text) {
			i++
			if text[i] == 'u' && i+4 < len(text) {
				n, _ := strconv.ParseUint(text[i+1:i+5], 16, 16)
				unit, i = int(n), i+4
			}
		}
		low := unit >= 0xdc00 && unit < 0xe000
		if low != high {
			return true
		}
		high = unit >= 0xd800 && unit < 0xdc00
	}
	return high
}

// spell writes v with members shuffled, white space thrown in and characters
// escaped, as rng has it.
func spell(rng *rand.Rand, v any) string {
	space := func() string { return strings.Repeat(" \n\t\r"[rng.IntN(4):][:1], rng.IntN(2)) }
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			names[i] = space() + spell(rng, name) + space() + ":" + spell(rng, v[name])
		}
		return space() + "{" + strings.Join(names, ",") + space() + "}" + space()
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = spell(rng, v[i])
		}
		return space() + "[" + strings.Join(items, ",") + space() + "]" + space()
	case string:
		out := `"`
		for _, r := range v {
			if r < ' ' || r == '"' || r == '\\' || r < 0x10000 && rng.IntN(4) == 0 {
				out += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[rng.IntN(2)], r)
			} else {
				out += string(r)
			}
		}
		return out + `"`
	case nil:
		return space() + "null" + space()
	default:
		return space() + fmt.Sprint(v) + space()
	}
}

// alter returns v with one string, number or literal in it changed, if it has
// one.
func alter(rng *rand.Rand, v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if changed, ok := alter(rng, v[name]); ok {
				out := maps.Clone(v)
				out[name] = changed
				return out, true
			}
		}
		return nil, false
	case []any:
		for i := range v {
			if changed, ok := alter(rng, v[i]); ok {
				out := slices.Clone(v)
				out[i] = changed
				return out, true
			}
		}
		return nil, false
	case string:
		runes := []rune(v)
		if len(runes) == 0 {
			return "x", true
		}
		runes[rng.IntN(len(runes))] ^= 1
		return string(runes), string(runes) != v
	case stdjson.Number:
		return v.String() + "0", true
	default:
		return "x", true
	}
}

// FuzzMultipartBoundary holds the meaning of multipart against mime/multipart:
// what has one meaning with b has the same parts, and the same parts under
// another boundary have the same meaning.
func FuzzMultipartBoundary(f *testing.F) {
	f.Add([]byte("--b1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b1--\r\n"), []byte("y"))
	f.Add([]byte("--b1\r\n\r\n--b1--"), []byte("\r\n--b1\r\n"))
	p := policy(f, fingerprint.Config{})
	f.Fuzz(func(t *testing.T, body, content []byte) {
		a := post("multipart/form-data; boundary=b1", string(body))
		b := post("multipart/form-data; boundary=quite-another", strings.ReplaceAll(string(body), "--b1", "--quite-another"))
		if len(body) > 0 && p.Of(a).Meaning == p.Of(b).Meaning {
			assert.Equal(t, goParts(t, a.Body, "b1"), goParts(t, b.Body, "quite-another"), "%q", body)
		}
		if bytes.Contains(content, []byte("--b")) {
			return
		}
		x, y := upload(t, "b1", string(content)), upload(t, "b2", string(content))
		assert.Equal(t, p.Of(x).Meaning, p.Of(y).Meaning, "%q under two boundaries", content)
		y = upload(t, "b2", string(content)+"+")
		assert.True(t, p.Of(x).Meaning != p.Of(y).Meaning, "%q and one byte more", content)
	})
}

// goParts reads a body as mime/multipart does.
func goParts(t testing.TB, body []byte, boundary string) (parts []goPart) {
	t.Helper()
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts
		}
		assert.NoError(t, err, "%q", body)
		content, err := io.ReadAll(part)
		assert.NoError(t, err, "%q", body)
		parts = append(parts, goPart{part.Header, content})
	}
}

// FuzzContentType holds media types against package mime: types that mean the
// same are read as the same, and what mime writes again means the same.
func FuzzContentType(f *testing.F) {
	f.Add("text/plain; charset=utf-8", `Text/plain;Charset="UTF-8"`)
	f.Add(`multipart/form-data; boundary="a;b"`, `a/b; c="d\"e"`)
	f.Add("application/json;;x=1;", "form-data; x")
	p := policy(f, fingerprint.Config{})
	f.Fuzz(func(t *testing.T, a, b string) {
		if a != b && p.Of(post(a, "x")).Meaning == p.Of(post(b, "x")).Meaning {
			assert.Equal(t, mimeRead(t, a), mimeRead(t, b), "%q and %q", a, b)
		}
		kind, params, err := mime.ParseMediaType(a)
		plain := mime.FormatMediaType(kind, params)
		if err != nil || !strings.Contains(kind, "/") || strings.ContainsAny(plain, `*\{}`) || strings.Count(plain, ";") != len(params) || len(params) > 16 {
			return
		}
		spaced := strings.ReplaceAll(plain, "; ", " ;\t") + "; "
		assert.Equal(t, p.Of(post(plain, "x")).Meaning, p.Of(post(spaced, "x")).Meaning, "%q and %q", plain, spaced)
	})
}

func mimeRead(t testing.TB, s string) string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(s)
	assert.NoError(t, err, "%q", s)
	if charset, ok := params["charset"]; ok {
		params["charset"] = strings.ToLower(charset)
	}
	return fmt.Sprint(kind, params)
}

// FuzzOf looks for a request that upsets the computation, and for a part of a
// request that is left out.
func FuzzOf(f *testing.F) {
	f.Add("POST", "/a?b", "application/json", "", []byte(`{"a":1}`))
	f.Add("PATCH", "http://x", "multipart/mixed; boundary=b", "gzip, identity", []byte("--b--"))
	f.Fuzz(func(t *testing.T, method, target, contentType, coding string, body []byte) {
		p := policy(t, fingerprint.Config{Headers: []string{"X-Account"}})
		r := post(contentType, string(body))
		r.Method, r.Target = method, target
		r.Header["Content-Encoding"] = []string{coding}
		before := bytes.Clone(body)
		first := p.Of(r)
		assert.Equal(t, p.Of(r), first, "twice")
		assert.True(t, bytes.Equal(body, before), "the body was changed")

		longer := r
		longer.Body = append(bytes.Clone(body), '~')
		assert.True(t, !p.Of(longer).Same(first), "one byte more is the same request")
		elsewhere := r
		elsewhere.Method += "~"
		assert.True(t, !p.Of(elsewhere).Same(first), "another method is the same request")
		theirs := r
		theirs.Header = map[string][]string{"X-Account": {""}}
		maps.Copy(theirs.Header, r.Header)
		assert.True(t, !p.Of(theirs).Same(first), "another account is the same request")
	})
}
