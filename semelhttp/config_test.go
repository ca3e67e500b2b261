package semelhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

func TestConfig(t *testing.T) {
	t.Parallel()

	t.Run("A bad setting is refused with its field and its bound", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		for want, cfg := range map[string]semelhttp.Config{
			"MaxRequestBody is -1 bytes; it must be positive": {MaxRequestBody: -1},
			"MaxReplyBody is -1 bytes; it must be positive":   {MaxReplyBody: -1},
			"ByteBudget is -1 bytes; it must be positive":     {ByteBudget: -1},
			"BodyReadTimeout is -1s; it must be positive":     {BodyReadTimeout: -time.Second},
			`KeyHeader is "My Key", which is not`:             {KeyHeader: "My Key"},
		} {
			_, err := semelhttp.New(s.guard, callerScope, cfg)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), "semelhttp: "+want)
		}
	})

	t.Run("A header that means something else cannot carry the key, in any case", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		for _, name := range []string{
			"Host", "Transfer-Encoding", "Content-Length", "Connection", "Trailer", "TE", "Content-Type",
			"Authorization", "Cookie", "hOST", "content-length", "Accept", "User-Agent", "Traceparent",
		} {
			_, err := semelhttp.New(s.guard, callerScope, semelhttp.Config{KeyHeader: name})
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), `semelhttp: KeyHeader is "`+http.CanonicalHeaderKey(name)+`", which means something else in a request`)
		}
		for _, name := range []string{"x-idempotency-key", "Request-Id"} {
			_, err := semelhttp.New(s.guard, callerScope, semelhttp.Config{KeyHeader: name})
			assert.NoError(t, err)
		}
	})

	t.Run("Guard, scope and handler are required", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		_, err := semelhttp.New(nil, callerScope, semelhttp.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "semelhttp: guard is required")
		_, err = semelhttp.New(s.guard, nil, semelhttp.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "scope is required")
		_, err = s.mw.Protect(nil, semelhttp.Route{Name: "orders"})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "next is required")
	})

	t.Run("A bad route is refused with its field and its bound", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		for want, route := range map[string]semelhttp.Route{
			"Route.Name is required":                              {},
			`Path is "orders"; it must start with a slash`:        {Name: "orders", Path: "orders"},
			"Methods has GET, which never needs a key":            {Name: "orders", Methods: []string{"POST", "GET"}},
			"Methods has POST twice":                              {Name: "orders", Methods: []string{"POST", "PUT", "POST"}},
			`Path is "/x y"; no path has spaces or`:               {Name: "orders", Path: "/x y"},
			`Path is "/x\n"; no path has spaces or`:               {Name: "orders", Path: "/x\n"},
			`Path is "/x\u00a0"; no path has spaces or`:           {Name: "orders", Path: "/x\u00a0"},
			`Methods has "post", which is not a method`:           {Name: "orders", Methods: []string{"post"}},
			"NotApplied has 200; only statuses from 400 to 599":   {Name: "orders", NotApplied: []int{200}},
			"AllInTx goes with Mode semel.Joined only":            {Name: "orders", AllInTx: true},
			"MaxRequestBody is -1 bytes; it must be positive":     {Name: "orders", MaxRequestBody: -1},
			"at most ByteBudget (268435456)":                      {Name: "orders", MaxReplyBody: 1 << 40},
			`Route "orders": Headers has "Authorization": a cred`: {Name: "orders", Headers: []string{"Authorization"}},
			`Route "orders": Headers has "Content-Length": it is`: {Name: "orders", Headers: []string{"Content-Length"}},
			`Route "orders": Headers has "idempotency-key", w`:    {Name: "orders", Headers: []string{"idempotency-key"}},
			`Route "orders": Path is "x"; it must start with a `:  {Name: "orders", Path: "x"},
		} {
			_, err := s.mw.Protect(http.NotFoundHandler(), route)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), want)
		}
	})

	t.Run("Every method that never needs a key is refused", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"} {
			_, err := s.mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: method, Methods: []string{method}})
			assert.ErrorIs(t, err, semel.ErrConfig)
		}
		_, err := s.mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: "orders", Methods: []string{"PUT", "DELETE"}})
		assert.NoError(t, err)
	})

	t.Run("Two routes with one name are refused", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		s.protect(t, semelhttp.Route{Name: "orders"}, s.created)
		_, err := s.mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: "orders"})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "is taken")
	})

	t.Run("A mode that the store cannot run fails at construction", func(t *testing.T) {
		t.Parallel()
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		g, err := semel.New(store, semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		mw, err := semelhttp.New(g, callerScope, semelhttp.Config{})
		assert.NoError(t, err)
		_, err = mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: "orders", Mode: semel.Joined})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), `semelhttp: Route "orders": Mode is Joined, but the store (`)
		_, err = mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: "orders", Mode: semel.Atomic})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), `semelhttp: Route "orders": Mode is Atomic, but the store (`)
		_, err = mw.Protect(http.NotFoundHandler(), semelhttp.Route{Name: "orders", Mode: semel.Atomic, FailOpen: true})
		assert.Contains(t, err.Error(), "FailOpen does not go with Mode semel.Joined or semel.Atomic")
	})

	t.Run("A bad older fingerprint fails at construction", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		_, err := semelhttp.New(s.guard, callerScope, semelhttp.Config{OlderFingerprints: []fingerprint.Config{{}, {Headers: []string{"Cookie"}}}})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), `semelhttp: OlderFingerprints[1]: Headers has "Cookie"`)
	})

	t.Run("A short secret is refused", func(t *testing.T) {
		t.Parallel()
		_, err := semelhttp.AuthorizationHMAC([]byte("0123456789abcde"))
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "semelhttp: secret has 15 bytes; at least 16")
	})
}

func TestAuthorizationHMAC(t *testing.T) {
	t.Parallel()
	digest := func(secret string, values ...string) semel.Digest {
		hmac, err := semelhttp.AuthorizationHMAC([]byte(secret))
		assert.NoError(t, err)
		return hmac(&http.Request{Header: http.Header{"Authorization": values}})
	}
	t.Run("It depends on the credential, on the secret, and on nothing else", func(t *testing.T) {
		t.Parallel()
		const secret = "0123456789abcdef"
		one := digest(secret, "Bearer one")
		assert.Equal(t, digest(secret, "Bearer one"), one)
		assert.True(t, digest(secret, "Bearer two") != one, "another credential differs")
		assert.True(t, digest(secret+"x", "Bearer one") != one, "another secret differs")
		assert.True(t, digest(secret) != semel.Digest{}, "no credential is not the zero digest")
		assert.True(t, digest(secret, "a", "b") != digest(secret, "ab"), "two lines are not one")
	})
}
