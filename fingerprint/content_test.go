package fingerprint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

// readAsJSON reports whether white space around a body is nothing, which is so
// exactly of a body that is read as JSON.
func readAsJSON(t testing.TB, contentType, body string) bool {
	t.Helper()
	p := policy(t, fingerprint.Config{})
	return p.Of(post(contentType, body)).Meaning == p.Of(post(contentType, " "+body+" ")).Meaning
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	pairs := func(claim string, check func(*testing.T, fingerprint.Request, fingerprint.Request), body string, types ...string) {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			for i, a := range types {
				for _, b := range types[i+1:] {
					check(t, post(a, body), post(b, body))
				}
			}
		})
	}
	pairs("case, spacing, quotes and the order of parameters do not matter", same, "x",
		"text/plain;charset=utf-8;format=flowed", "Text/PLAIN; Format=flowed; Charset=\"UTF-8\"", "text/plain ;charset=UTF-8 ; format=flowed;")
	pairs("the charset of a text matters", other, "x",
		"text/plain", "text/plain; charset=utf-8", "text/plain; charset=iso-8859-1")
	pairs("utf-8 is what JSON has anyway", same, `{"a":1}`,
		"application/json", "application/json; charset=utf-8", `application/JSON;charset="UTF-8"`)
	pairs("the case of other values matters", other, "x", "text/plain; v=a", "text/plain; v=A")
	pairs("every other parameter matters", other, `{"a":1}`,
		"application/json", "application/json; profile=a", "application/json; profile=b", "application/json; charset=utf-16")
	pairs("types are not each other, JSON or not", other, `{"a":1}`,
		"", "application/json", "application/merge-patch+json", "text/json", "text/plain", "application/octet-stream", "json")
	pairs("what cannot be read counts as it is written", other, "x",
		"text/plain; a", "text/plain; a=", "text/plain; a=b c", "text/plain; a=\"b", "text/plain; a=1; a=2", "text/plain; A=1; A=2",
		"text/", "TEXT/", "/plain", "/PLAIN", "text/pla in", "text/plain, text/html", "TEXT", "text")
	pairs("a value with a backslash counts as it is written", other, "x",
		`text/plain; a="b"`, `text/plain; a="\b"`, `text/plain; a="\"b\""`, `text/plain; a="\\b"`)
	pairs("sixteen parameters are read as well", same, "x",
		"text/plain"+numbered(16), "text/plain; p15=v"+numbered(15))
	pairs("more than sixteen parameters count as they are written", other, `{"a":1}`,
		"application/json"+numbered(17), "application/json; p16=v"+numbered(16), "application/json")
	pairs("a semicolon inside quotes is part of the value", other, "x",
		`text/plain; a="1;b=2"`, `text/plain; a=1;b=2`)
	pairs("an extended value counts as it is written", other, "x",
		"text/plain; a*=iso-8859-1''x", "text/plain; a*=iso-8859-1''y", "text/plain; a=x")
}

// numbered is n parameters: p0, p1 and so on.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ";p%d=v", i)
	}
	return b.String()
}

func TestWhatIsReadAsJSON(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) }
	cases := []struct {
		claim, contentType, body string
		want                     bool
	}{
		{"application/json is", "application/json", `{"a":1}`, true},
		{"a +json suffix is", "application/vnd.api+json", `{"a":1}`, true},
		{"text/json is", "text/json", `{"a":1}`, true},
		{"a lone literal is", "application/json", `null`, true},
		{"text/plain is not", "text/plain", `{"a":1}`, false},
		{"a type with more than 16 parameters is not", "application/json" + numbered(17), `{"a":1}`, false},
		{"no type is not", "", `{"a":1}`, false},
		{"a stream of lines is not", "application/x-ndjson", `{"a":1}`, false},
		{"another charset is not", "application/json; charset=iso-8859-1", `{"a":1}`, false},
		{"a doubled name is not", "application/json", `{"a":1,"a":1}`, false},
		{"a name doubled by an escape is not", "application/json", `{"a":1,"\u0061":2}`, false},
		{"a doubled name far down is not", "application/json", `[{"x":[{"a":1,"a":2}]}]`, false},
		{"names that differ only in case are not", "application/json", `{"amount":1,"AMOUNT":900}`, false},
		{"such names far apart and far down are not", "application/json", `[{"x":[{"iD":1,"b":{"B":1},"ID":{"c":1},"a":2,"Id":3}]}]`, false},
		{"the sign of Kelvin is a k", "application/json", `{"K":1,"\u212a":2}`, false},
		{"a long s is an s", "application/json", "{\"s\":1,\"\u017f\":2}", false},
		{"letters of every script have case", "application/json", `{"größe":1,"GRÖßE":2}`, false},
		{"case after an escape is found", "application/json", `{"\\\"n\u0001a":1,"\\\"n\u0001A":2}`, false},
		{"escapes have no case", "application/json", `{"\n":1,"\\N":2,"\\\\N":3}`, true},
		{"ß and ss are two letters and one", "application/json", `{"ß":1,"ss":2}`, true},
		{"names of two objects are", "application/json", `{"a":{"A":{"a":1}},"b":[{"A":1},{"a":1}]}`, true},
		{"values that differ only in case are", "application/json", `{"a":"B","b":"A","c":["x","X"]}`, true},
		{"names that begin alike are", "application/json", `{"a":1,"AB":2,"abc":3,"":4}`, true},
		{"bad UTF-8 is not", "application/json", "{\"a\":\"\xff\"}", false},
		{"a lone surrogate is not", "application/json", `{"a":"\ud800"}`, false},
		{"surrogates the wrong way round are not", "application/json", `"\ude02\ud83d"`, false},
		{"trailing data is not", "application/json", `{"a":1}{"b":2}`, false},
		{"a trailing comma is not", "application/json", `{"a":1,}`, false},
		{"a byte order mark is not", "application/json", "\ufeff{}", false},
		{"a leading zero is not", "application/json", `{"a":01}`, false},
		{"a text of spaces is not", "application/json", `  `, false},
		{"128 levels are", "application/json", nested(128), true},
		{"129 levels are not", "application/json", nested(129), false},
		{"100000 levels are not", "application/json", nested(100_000), false},
		{"brackets in strings are no levels", "application/json", `"` + strings.Repeat(`[\"`, 300) + `"`, true},
		{"brackets one after the other are no levels", "application/json", `[` + strings.Repeat(`[],`, 300) + `[]]`, true},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, readAsJSON(t, c.contentType, c.body), c.want)
			same(t, post(c.contentType, c.body), post(c.contentType, c.body))
		})
	}
	t.Run("what is not is compared as bytes", func(t *testing.T) {
		t.Parallel()
		other(t, json(`{"a":1,"a":2}`), json(`{"a":2,"a":1}`))
		other(t, json(`{"a":1,"a":2}`), json(`{"a":2}`))
		other(t, json(`{"amount":1,"AMOUNT":900}`), json(`{"AMOUNT":900,"amount":1}`))
		other(t, json("\"\xff\""), json("\"\xfe\""))
	})
}

func TestEncodedBodies(t *testing.T) {
	t.Parallel()
	with := func(body string, codings ...string) fingerprint.Request {
		r := json(body)
		if codings != nil {
			r.Header["Content-Encoding"] = codings
		}
		return r
	}
	t.Run("identity is no encoding", func(t *testing.T) {
		t.Parallel()
		same(t, with(`{"a":1}`), with(`{"a": 1}`, "Identity"))
		same(t, with(`{"a":1}`), with(`{"a": 1}`, "identity, ", ""))
	})
	t.Run("an encoded body is bytes, even if it looks like JSON", func(t *testing.T) {
		t.Parallel()
		other(t, with(`{"a":1}`, "gzip"), with(`{"a": 1}`, "gzip"))
		other(t, with(`{"a":1}`, "gzip"), with(`{"a":1}`))
		other(t, with(`{"a":1}`, "identity, gzip"), with(`{"a": 1}`, "identity, gzip"))
	})
	t.Run("codings have no case but an order", func(t *testing.T) {
		t.Parallel()
		same(t, with("x", "gzip, br"), with("x", "GZIP", "Br"))
		other(t, with("x", "gzip, br"), with("x", "br, gzip"))
	})
}

func TestEmptyBody(t *testing.T) {
	t.Parallel()
	t.Run("its type and encoding describe nothing", func(t *testing.T) {
		t.Parallel()
		same(t, post("", ""), post("application/json", ""))
		same(t, post("text/plain", ""), post("multipart/form-data; boundary=b", ""))
		r := post("", "")
		r.Header["Content-Encoding"] = []string{"gzip"}
		same(t, post("", ""), r)
	})
	t.Run("an empty body is no body and not an empty value", func(t *testing.T) {
		t.Parallel()
		absent := json("")
		absent.Body = nil
		same(t, json(""), absent)
		for _, body := range []string{" ", "null", `""`, "{}", "[]", "0"} {
			other(t, json(""), json(body))
		}
	})
}

// Two bodies read by different rules are two requests, even if one is the
// canonical text of the other.
func TestKindsDoNotMeet(t *testing.T) {
	t.Parallel()
	multipart := "--b\r\nA: 1\r\n\r\nx\r\n--b--\r\n"
	requests := map[string]fingerprint.Request{
		"empty":                         post("application/json", ""),
		"JSON":                          json(`{"a":1}`),
		"the same bytes as text":        post("text/plain", `{"a":1}`),
		"the same bytes without type":   post("", `{"a":1}`),
		"the same bytes in utf-16":      post("application/json; charset=utf-16", `{"a":1}`),
		"multipart":                     post("multipart/mixed; boundary=b", multipart),
		"multipart as bytes":            post("multipart/mixed", multipart),
		"what a multipart is hashed as": post("multipart/mixed", "\x01"+strings.Repeat("\x00", 15)+"\x01x"),
		"a multipart without headers":   post("multipart/mixed; boundary=b", "--b\r\n\r\nx\r\n--b--"),
		"multipart with a bad end":      post("multipart/mixed; boundary=b", multipart+"x"),
	}
	p := policy(t, fingerprint.Config{})
	seen := map[string]string{}
	for name, r := range requests {
		sum := fmt.Sprint(p.Of(r).Meaning)
		assert.Equal(t, seen[sum], "", "%s means the same", name)
		seen[sum] = name
	}
}
