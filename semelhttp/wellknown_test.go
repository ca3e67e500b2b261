package semelhttp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

func TestWellKnown(t *testing.T) {
	t.Parallel()

	t.Run("The rules of every route are published as they are in force", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{
			recovery: semel.Resume(24 * time.Hour),
			mw:       semelhttp.Config{StrictKey: true, KeyHeader: "x-my-key", PublishedScope: "customer"},
		})
		s.protect(t, semelhttp.Route{Name: "pay", Path: "/payments"}, s.created)
		s.protect(t, semelhttp.Route{
			Name: "put", Path: "/orders/{id}", Methods: []string{"PUT"}, KeyOptional: true,
			NotApplied: []int{503, 429}, MaxRequestBody: 10, MaxReplyBody: 20, FailOpen: true,
		}, s.created)
		srv := memhttp.New(t, s.mw.WellKnown())
		got := get(t, srv, http.MethodGet, "")
		assert.Equal(t, got.StatusCode, http.StatusOK)
		assert.Equal(t, got.Header.Get("Content-Type"), "application/json")
		var document any
		assert.NoError(t, json.Unmarshal([]byte(got.text), &document))
		want := func(change map[string]any) map[string]any {
			e := map[string]any{
				"methods": []any{"POST", "PATCH"}, "path": "/payments", "header": "X-My-Key", "required": true,
				"keySyntax": "sf-string", "maxKeyLength": 255.0, "scope": "customer",
				"retention": (24*time.Hour + 24*time.Hour - 5*time.Minute).Seconds(), "resumeWithin": (24*time.Hour - 5*time.Minute).Seconds(),
				"recovery": "resume:24h0m0s",
				"kept": map[string]any{
					"classes": []any{"2xx", "3xx", "4xx"}, "except": []any{401.0, 403.0, 407.0, 408.0, 421.0, 425.0, 429.0, 499.0},
					"exceptWithRetryAfter": []any{409.0, 422.0, 423.0},
				},
				"maxRequestBody": 1048576.0, "maxResponseBody": 1048576.0, "storeClass": "best-effort", "failOpen": false,
			}
			maps.Copy(e, change)
			return e
		}
		assert.Equal(t, document, any(map[string]any{"endpoints": []any{
			want(nil),
			want(map[string]any{
				"methods": []any{"PUT"}, "path": "/orders/{id}", "required": false, "failOpen": true, "maxRequestBody": 10.0, "maxResponseBody": 20.0,
				"kept": map[string]any{
					"classes": []any{"2xx", "3xx", "4xx"}, "except": []any{401.0, 403.0, 407.0, 408.0, 421.0, 425.0, 429.0, 499.0, 503.0},
					"exceptWithRetryAfter": []any{409.0, 422.0, 423.0},
				},
			}),
		}}))
	})

	t.Run("Never is 0 and no bound is null", func(t *testing.T) {
		t.Parallel()
		for recovery, want := range map[semel.Recovery]string{semel.Hold(): `"resumeWithin": 0,`, semel.Resume(semel.Forever): `"resumeWithin": null,`} {
			s := newService(t, settings{recovery: recovery})
			s.protect(t, semelhttp.Route{}, s.created)
			assert.Contains(t, get(t, memhttp.New(t, s.mw.WellKnown()), http.MethodGet, "").text, want)
		}
	})

	t.Run("It can be cached, and asked whether it has changed", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		srv := memhttp.New(t, s.mw.WellKnown())
		first := get(t, srv, http.MethodGet, "")
		assert.Equal(t, first.text, "{\n  \"endpoints\": []\n}\n")
		assert.Equal(t, first.Header.Get("Cache-Control"), "public, max-age=300")
		etag := first.Header.Get("ETag")
		assert.Equal(t, get(t, srv, http.MethodGet, etag).StatusCode, http.StatusNotModified)
		s.protect(t, semelhttp.Route{}, s.created)
		assert.Equal(t, get(t, srv, http.MethodGet, etag).StatusCode, http.StatusOK)
		head := get(t, srv, http.MethodHead, "")
		assert.Equal(t, head.text, "")
		assert.True(t, head.ContentLength > 100, "HEAD says how long it is")
	})

	t.Run("Only GET and HEAD are answered", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		got := get(t, memhttp.New(t, s.mw.WellKnown()), http.MethodPost, "")
		assert.Equal(t, got.StatusCode, http.StatusMethodNotAllowed)
		assert.Equal(t, got.Header.Get("Allow"), "GET, HEAD")
	})
}

func get(t *testing.T, srv *memhttp.Server, method, etag string) reply {
	t.Helper()
	r, err := do(srv.Client(), method, srv.URL()+semelhttp.WellKnownPath, "", "", "If-None-Match", etag)
	assert.NoError(t, err)
	return r
}
