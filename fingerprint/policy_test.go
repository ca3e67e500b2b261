package fingerprint_test

import (
	"encoding/hex"
	"regexp"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
)

func TestPolicyID(t *testing.T) {
	t.Parallel()
	id := func(cfg fingerprint.Config) string { return policy(t, cfg).ID() }

	t.Run("it is short and names the version", func(t *testing.T) {
		t.Parallel()
		assert.True(t, regexp.MustCompile(`^v1-[0-9a-f]{8}$`).MatchString(id(fingerprint.Config{})), "got %q", id(fingerprint.Config{}))
	})
	// Saved records carry these: a change here needs a new version beside
	// the old.
	t.Run("it never changes between releases", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, id(fingerprint.Config{}), "v1-6c1f9a17")
		assert.Equal(t, id(fingerprint.Config{Host: true, Headers: []string{"X-Account-Id", "If-Match"}}), "v1-a050d283")
	})
	t.Run("neither do the digests", func(t *testing.T) {
		t.Parallel()
		p := policy(t, fingerprint.Config{})
		for _, g := range goldens {
			f := p.Of(g.request)
			assert.Equal(t, hexed(f.Raw), g.raw, g.name)
			assert.Equal(t, hexed(f.Meaning), g.meaning, g.name)
		}
	})
	t.Run("every choice has its own", func(t *testing.T) {
		t.Parallel()
		ids := map[string]fingerprint.Config{}
		for _, cfg := range []fingerprint.Config{
			{},
			{Host: true},
			{Headers: []string{"If-Match"}},
			{Headers: []string{"If-Match", "X-Account-Id"}},
			{Host: true, Headers: []string{"If-Match"}},
		} {
			earlier, taken := ids[id(cfg)]
			assert.True(t, !taken, "%+v and %+v share an id", cfg, earlier)
			ids[id(cfg)] = cfg
		}
	})
	t.Run("order, case and repetition of header names are no choice", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t,
			id(fingerprint.Config{Headers: []string{"x-account-id", "IF-MATCH", "If-Match"}}),
			id(fingerprint.Config{Headers: []string{"If-Match", "X-Account-Id"}}))
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"":                    "not a header name",
		"X Account":           "not a header name",
		"X-Account:":          "not a header name",
		"host":                "set Host instead",
		"authorization":       "belongs to the scope",
		"Proxy-Authorization": "belongs to the scope",
		"Cookie":              "belongs to the scope",
		"content-length":      "framing of one try",
		"Date":                "changes between tries",
		"Connection":          "belongs to one connection",
		"Keep-Alive":          "belongs to one connection",
		"Proxy-Connection":    "belongs to one connection",
		"TE":                  "belongs to one connection",
		"Trailer":             "belongs to one connection",
		"Transfer-Encoding":   "belongs to one connection",
		"Upgrade":             "belongs to one connection",
	} {
		cfg := fingerprint.Config{Headers: []string{"X-Account", name}}
		_, err := fingerprint.New(cfg)
		assert.ErrorIs(t, err, semel.ErrConfig, "%q", name)
		assert.Contains(t, err.Error(), text)
		assert.Contains(t, err.Error(), `Headers has "`+name+`"`)
		_, err = fingerprint.NewSet(cfg)
		assert.ErrorIs(t, err, semel.ErrConfig, "%q in force", name)
		_, err = fingerprint.NewSet(fingerprint.Config{}, cfg)
		assert.ErrorIs(t, err, semel.ErrConfig, "%q in an older policy", name)
	}
}

func TestNamedHeaders(t *testing.T) {
	t.Parallel()
	p := policy(t, fingerprint.Config{Headers: []string{"x-account", "If-Match"}})
	with := func(name string, values ...string) semel.Fingerprint {
		r := json(`{}`)
		r.Header[name] = values
		return p.Of(r)
	}
	none := p.Of(json(`{}`))
	for claim, pair := range map[string][2]semel.Fingerprint{
		"another value":               {with("X-Account", "1"), with("X-Account", "2")},
		"absent and empty":            {none, with("X-Account", "")},
		"the same value elsewhere":    {with("X-Account", "1"), with("If-Match", "1")},
		"two values and their join":   {with("X-Account", "1", "2"), with("X-Account", "1, 2")},
		"two values in another order": {with("X-Account", "1", "2"), with("X-Account", "2", "1")},
	} {
		assert.True(t, !pair[0].Same(pair[1]), "%s: got one request, want two", claim)
	}
	assert.True(t, with("X-Account", "1").Same(with("X-Account", "1")), "equal headers: got two requests, want one")
	assert.True(t, none.Same(with("X-Other", "1")), "a header that is not named counts")
}

func TestHost(t *testing.T) {
	t.Parallel()
	p := policy(t, fingerprint.Config{Host: true})
	at := func(host string) semel.Fingerprint {
		r := json(`{}`)
		r.Host = host
		return p.Of(r)
	}
	assert.True(t, !at("a.example").Same(at("b.example")), "two hosts: got one request, want two")
	assert.True(t, !at("a.example").Same(at("a.example:8080")), "two ports: got one request, want two")
	assert.True(t, at("a.example").Same(at("A.Example")), "the case of a host: got two requests, want one")
}

// R21: while two configurations are deployed, each knows the other's records.
func TestSet(t *testing.T) {
	t.Parallel()
	before, now := fingerprint.Config{}, fingerprint.Config{Headers: []string{"X-Account"}}
	saved := policy(t, before).Of(json(`{"a":1,"b":2}`))
	repeat := json(`{"b":2,"a":1}`)
	repeat.Header["X-Account"] = []string{"1"}

	set, err := fingerprint.NewSet(now, before)
	assert.NoError(t, err)
	assert.Equal(t, set.ID(), policy(t, now).ID())
	assert.True(t, !set.Of(repeat).Same(saved), "fingerprints of two policies: got one request, want two")

	again, ok := set.Refingerprint(repeat, saved.Policy)
	assert.True(t, ok, "the older policy is not loaded")
	assert.True(t, again.Same(saved), "under the record's own policy: got two requests, want one")

	_, ok = set.Refingerprint(repeat, "v0-00000000")
	assert.True(t, !ok, "a policy that is not loaded was found")
}

// Fingerprints of two policies that cover different things are never equal in
// raw either, though nothing else differs.
func TestPoliciesDoNotMeet(t *testing.T) {
	t.Parallel()
	r := json(`{}`)
	configs := []fingerprint.Config{{}, {Host: true}, {Headers: []string{"X-A"}}, {Headers: []string{"X-B"}}}
	for i, a := range configs {
		for _, b := range configs[i+1:] {
			fa, fb := policy(t, a).Of(r), policy(t, b).Of(r)
			assert.True(t, fa.Raw != fb.Raw && fa.Meaning != fb.Meaning, "%+v and %+v meet", a, b)
		}
	}
}

func hexed(d semel.Digest) string { return hex.EncodeToString(d[:]) }

// goldens are what version v1 gives, for ever.
var goldens = []struct {
	name         string
	request      fingerprint.Request
	raw, meaning string
}{
	{
		"empty", post("", ""),
		"ef683f4428398a7b5827ac3441a78842f32cc559b187ca85daff54fc7312cb0a",
		"9afe2ae157d067cf40db2328afabb236455311a8875dbdfb5c6c8eae74af2360",
	},
	{
		"bytes", post("text/plain; charset=UTF-8", "x"),
		"5f3974cbc491d9dd616b51b5d5ab6c07c96f072fa91476644e15749fcd315c58",
		"9f76554725a7d93085c34d83ed5e4302ebd2b3aea2f1c0bb13e10626a0383044",
	},
	{
		"JSON", json(`{"b":[1.0,"\u00e9"],"a":null}`),
		"45dbd3c4d01956ba6d8ee6e31f8d1a8b641c196a371e70f7afaa13b9ed1cff76",
		"86b58e0459ac28d28e862e653af130a68f180c994839182eb539cf4ff76dc644",
	},
	{
		"multipart", form("b", "--BOUNDARY\nContent-Disposition: form-data; name=a\n\nx\n--BOUNDARY--"),
		"2d4f409dfbffcc34abff8e9777cc789dd2dc377a5a45710bd283c0252d4be1ce",
		"6428971ba37f5ef19532e91da426f9d6a5bdbdc99ddeabcf01eef0bb27940161",
	},
	{
		"multipart that is bytes", form("b", "--BOUNDARY\nA: 1\n\nx\n--BOUNDARY--bye"),
		"8fb763ffed7be03d5961792cb837c64572fe8f3795fe646156b4f40bda79b7cf",
		"09f00dca535903480d077efc477a26f1434a344d42e4aa3bb70445a83acd37d7",
	},
}
