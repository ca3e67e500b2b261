package fingerprint_test

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

// policy returns the policy for cfg.
func policy(t testing.TB, cfg fingerprint.Config) *fingerprint.Policy {
	t.Helper()
	p, err := fingerprint.New(cfg)
	assert.NoError(t, err)
	return p
}

// post returns a request with a body of the given type.
func post(contentType, body string) fingerprint.Request {
	r := fingerprint.Request{
		Method: "POST",
		Target: "/orders?to=p1",
		Route:  "POST /orders",
		Host:   "api.example",
		Header: map[string][]string{"Accept": {"*/*"}},
		Body:   []byte(body),
	}
	if contentType != "" {
		r.Header["Content-Type"] = []string{contentType}
	}
	return r
}

func json(body string) fingerprint.Request { return post("application/json", body) }

// same and other check that two requests are one, or two, whichever came
// first, and that sameness is never a matter of the raw digest by accident.
func same(t *testing.T, a, b fingerprint.Request) {
	t.Helper()
	p := policy(t, fingerprint.Config{})
	assert.True(t, p.Of(a).Same(p.Of(b)), "got two requests, want one:\n%s\n%s", show(a), show(b))
	assert.True(t, p.Of(b).Same(p.Of(a)), "sameness is one-sided")
}

func other(t *testing.T, a, b fingerprint.Request) {
	t.Helper()
	p := policy(t, fingerprint.Config{})
	assert.True(t, !p.Of(a).Same(p.Of(b)), "got one request, want two:\n%s\n%s", show(a), show(b))
}

func show(r fingerprint.Request) string {
	return r.Method + " " + r.Target + " " + strings.Join(r.Header["Content-Type"], "|") + " " + string(r.Body)
}

// Case C33.
func TestJSONOrder(t *testing.T) {
	t.Parallel()
	t.Run("member order and white space do not matter at any depth", func(t *testing.T) {
		t.Parallel()
		same(t, json(`{"a":1,"b":{"x":1,"y":2}}`), json("{ \"b\" : {\"y\":2,\r\n\t\"x\":1}, \"a\":1 }\n"))
		same(t, json(`[{"a":1,"b":2}]`), json(` [ {"b":2,"a":1} ] `))
	})
	t.Run("the order of an array matters", func(t *testing.T) {
		t.Parallel()
		other(t, json(`[1,2]`), json(`[2,1]`))
	})
	t.Run("a member that is null is not an absent one", func(t *testing.T) {
		t.Parallel()
		other(t, json(`{"a":null}`), json(`{}`))
	})
	t.Run("a member belongs to its object", func(t *testing.T) {
		t.Parallel()
		other(t, json(`{"a":{"x":1},"b":{}}`), json(`{"a":{},"b":{"x":1}}`))
		other(t, json(`{"a":{"x":1,"b":2}}`), json(`{"a":{"x":1},"b":2}`))
	})
}

// Case C36: numbers are the same only as they are written, so that no rounding
// can make two amounts one.
func TestJSONNumbers(t *testing.T) {
	t.Parallel()
	for _, numbers := range [][]string{
		{"1", "1.0", "1e0", "1E0", "10e-1", `"1"`, "true"},
		{"0", "-0", "0.0", "-0.0", "0e0"},
		{"9007199254740992", "9007199254740993", "9007199254740992.0"},
		{"1e400", "1e401", "-1e400", "1.7976931348623157e308"},
		{"1.10", "1.1", "1.100"},
		{"0.1", "0.1000000000000000055511151231257827"},
		{"100000000000000000000", "1e20", "100000000000000000001"},
	} {
		for i, a := range numbers {
			for _, b := range numbers[i+1:] {
				other(t, json(`{"n":`+a+`}`), json(`{"n":`+b+`}`))
				other(t, json(a), json(b))
			}
			same(t, json(`{"n":`+a+`,"m":1}`), json(`{"m":1,"n": `+a+`}`))
		}
	}
}

// Case C37.
func TestJSONStrings(t *testing.T) {
	t.Parallel()
	t.Run("escapes are the text they stand for, in values and in names", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"caf\u00e9", `caf\u00e9`, `caf\u00E9`, `\u0063af\u00e9`} {
			same(t, json(`{"name":"caf\u00e9"}`), json(`{"name":"`+text+`"}`))
			same(t, json(`{"caf\u00e9":1}`), json(`{"`+text+`":1}`))
		}
		same(t, json(`{"p":"a\/b"}`), json(`{"p":"a/b"}`))
		same(t, json(`"\n\u001f\u003c"`), json(`"\u000a\u001F<"`))
		same(t, json(`"\ud83d\ude02"`), json("\"\U0001f602\""))
	})
	t.Run("texts that look alike stay two", func(t *testing.T) {
		t.Parallel()
		other(t, json(`"caf\u00e9"`), json(`"cafe\u0301"`))
		other(t, json(`"a"`), json(`"A"`))
		other(t, json(`"a"`), json(`"a "`))
		other(t, json(`"\\n"`), json(`"\n"`))
		other(t, json(`"\ufffd"`), json("\"\xff\""))
	})
}

// Case C39.
func TestFingerprintOmits(t *testing.T) {
	t.Parallel()
	base := json(`{"amount":100}`)
	with := func(change func(*fingerprint.Request)) fingerprint.Request {
		r := json(`{"amount":100}`)
		change(&r)
		return r
	}
	for claim, r := range map[string]fingerprint.Request{
		"another query is another request":        with(func(r *fingerprint.Request) { r.Target = "/orders?to=p2" }),
		"no query is another request":             with(func(r *fingerprint.Request) { r.Target = "/orders" }),
		"another method is another request":       with(func(r *fingerprint.Request) { r.Method = "PATCH" }),
		"another route name is another request":   with(func(r *fingerprint.Request) { r.Route = "POST /v2/orders" }),
		"another body is another request":         with(func(r *fingerprint.Request) { r.Body = []byte(`{"amount":101}`) }),
		"no body is another request":              with(func(r *fingerprint.Request) { r.Body = nil }),
		"another content type is another request": with(func(r *fingerprint.Request) { r.Header["Content-Type"] = []string{"application/vnd.x+json"} }),
		"no content type is another request":      with(func(r *fingerprint.Request) { delete(r.Header, "Content-Type") }),
		"two content types are another request": with(func(r *fingerprint.Request) {
			r.Header["Content-Type"] = []string{"application/json", "text/plain"}
		}),
		"another content encoding is another request": with(func(r *fingerprint.Request) { r.Header["Content-Encoding"] = []string{"gzip"} }),
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			other(t, base, r)
			p := policy(t, fingerprint.Config{})
			assert.True(t, p.Of(base).Raw != p.Of(r).Raw, "the raw digests are equal")
			assert.True(t, p.Of(base).Meaning != p.Of(r).Meaning, "the meanings are equal")
		})
	}
	t.Run("the query counts as received, names in their order", func(t *testing.T) {
		t.Parallel()
		for _, targets := range [][2]string{
			{"/transfer?a=1&b=2", "/transfer?b=2&a=1"},
			{"/transfer?a=1&a=2", "/transfer?a=2&a=1"},
			{"/transfer?a=1", "/transfer?a=1&"},
			{"/transfer?a=%20", "/transfer?a=+"},
			{"/transfer?", "/transfer"},
		} {
			other(t,
				with(func(r *fingerprint.Request) { r.Target = targets[0] }),
				with(func(r *fingerprint.Request) { r.Target = targets[1] }))
		}
	})
	t.Run("fields do not run into each other", func(t *testing.T) {
		t.Parallel()
		other(t, fingerprint.Request{Method: "POST", Target: "/a", Route: "bc"}, fingerprint.Request{Method: "POST", Target: "/ab", Route: "c"})
		other(t, fingerprint.Request{Method: "P", Target: "/a"}, fingerprint.Request{Method: "P/", Target: "a"})
	})
	t.Run("headers that are not named do not count", func(t *testing.T) {
		t.Parallel()
		same(t, base, with(func(r *fingerprint.Request) {
			r.Header["Accept"] = []string{"text/html"}
			r.Header["Traceparent"] = []string{"00-1-2-00"}
			r.Header["Authorization"] = []string{"Bearer new"}
			r.Host = "other.example"
		}))
	})
}

// Case C43: a path in another form is another request, never a second run.
func TestPathForm(t *testing.T) {
	t.Parallel()
	forms := []string{"/orders", "/orders/", "//orders", "/Orders", "/%6frders", "/orders/.", "/x/../orders", "/orders;a"}
	for i, a := range forms {
		for _, b := range forms[i+1:] {
			ra, rb := json(`{}`), json(`{}`)
			ra.Target, rb.Target = a, b
			other(t, ra, rb)
		}
	}
	t.Run("the absolute form is the same target", func(t *testing.T) {
		t.Parallel()
		for origin, absolutes := range map[string][]string{
			"/orders?u=http://x/y": {"http://api.example/orders?u=http://x/y", "https://h:1/orders?u=http://x/y"},
			"/":                    {"http://api.example", "http://api.example/"},
			"/?a=1":                {"http://api.example?a=1"},
		} {
			for _, absolute := range absolutes {
				ra, rb := json(`{}`), json(`{}`)
				ra.Target, rb.Target = origin, absolute
				same(t, ra, rb)
			}
		}
	})
}

// Case C47, the fingerprint's side: no way to a fingerprint leaves the body
// out.
func TestMismatchCheckBypass(t *testing.T) {
	t.Parallel()
	older := fingerprint.Config{Headers: []string{"X-Account"}}
	set, err := fingerprint.NewSet(fingerprint.Config{}, older)
	assert.NoError(t, err)
	one, two := json(`{"amount":1}`), json(`{"amount":2}`)
	ways := map[string]func(fingerprint.Request) semel.Fingerprint{
		"the policy in force": set.Of,
		"the policy in force, asked for by its id": func(r fingerprint.Request) semel.Fingerprint {
			f, ok := set.Refingerprint(r, set.ID())
			assert.True(t, ok, "the policy in force is not known by its id")
			return f
		},
		"an older policy": func(r fingerprint.Request) semel.Fingerprint {
			f, ok := set.Refingerprint(r, policy(t, older).ID())
			assert.True(t, ok, "the older policy is not known by its id")
			return f
		},
	}
	for name, of := range ways {
		a, b := of(one), of(two)
		assert.True(t, a.Raw != b.Raw, "%s: the raw digests are equal", name)
		assert.True(t, a.Meaning != b.Meaning, "%s: the meanings are equal", name)
		assert.Equal(t, a, of(json(`{"amount":1}`)), name)
	}
}
