package semelhttp_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

func TestFramingHeaders(t *testing.T) {
	t.Parallel()

	t.Run("A reply that went out in chunks leaves nothing of its framing to the retry", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				for _, part := range []string{"one ", "two"} {
					io.WriteString(w, part)
					assert.NoError(t, http.NewResponseController(w).Flush())
				}
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").text, "one two")
			again := post(t, srv.Client(), srv.URL, "k1", "")
			assert.Equal(t, again.outcome(), "reply-not-kept")
			assert.Equal(t, again.ContentLength, int64(len(again.text)))
			assert.Equal(t, len(again.TransferEncoding), 0)
		})
	})

	t.Run("A handler's own length does not come between a layer that compresses and its client", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5")
				io.WriteString(w, "hello")
			})
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				zw := &gzipped{ResponseWriter: w, zip: gzip.NewWriter(w)}
				defer zw.zip.Close()
				inner.ServeHTTP(zw, r)
			}))
			for n := range 2 {
				got := post(t, srv.Client(), srv.URL, "k1", "", "Accept-Encoding", "gzip")
				assert.Equal(t, got.replayed(), n == 1)
				plain, err := gzip.NewReader(strings.NewReader(got.text))
				assert.NoError(t, err)
				text, err := io.ReadAll(plain)
				assert.NoError(t, err)
				assert.Equal(t, string(text), "hello")
			}
		})
	})

	t.Run("The fields of the first connection are not said of another", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			hop := map[string]string{
				"Connection": "close, X-Hop", "X-Hop": "one", "Keep-Alive": "timeout=5", "Proxy-Connection": "keep-alive",
				"Te": "trailers", "Upgrade": "other/1", "Content-Length": "5",
			}
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range hop {
					w.Header().Set(name, value)
				}
				io.WriteString(w, "hello")
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").text, "hello")
			again := post(t, srv.Client(), srv.URL, "k1", "")
			assert.True(t, again.replayed(), "it is a replay")
			assert.Equal(t, again.text, "hello")
			assert.Equal(t, again.ContentLength, int64(5))
			assert.True(t, !again.Close, "the connection stays open")
			rec, err := s.guard.Get(t.Context(), "orders:anonymous", "k1")
			assert.NoError(t, err)
			for name := range hop {
				assert.True(t, name == "Content-Length" || again.Header[name] == nil, "%s is replayed", name)
				assert.True(t, rec.Reply.Header[name] == nil, "%s is saved", name)
			}
		})
	})
}

func TestStatus(t *testing.T) {
	t.Parallel()
	t.Run("A status that is not of three digits panics where the handler writes it, once", func(t *testing.T) {
		t.Parallel()
		for _, status := range []int{-1, 0, 42, 99, 1000} {
			s := newService(t, settings{})
			var panicked any
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				defer func() {
					panicked = recover()
					w.WriteHeader(http.StatusCreated)
					w.WriteHeader(status) // too late to matter
				}()
				w.WriteHeader(status)
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").StatusCode, http.StatusCreated)
			assert.Equal(t, panicked, any(fmt.Sprintf("invalid WriteHeader code %d", status)))
		}
	})
}

func TestContentType(t *testing.T) {
	t.Parallel()
	const page = "<html>hello"
	for name, set := range map[string]func(http.Header){
		"named":                    func(h http.Header) { h.Set("Content-Type", "text/csv") },
		"not named":                func(http.Header) {},
		"forbidden":                func(h http.Header) { h["Content-Type"] = nil },
		"empty":                    func(h http.Header) { h.Set("Content-Type", "") },
		"not named, and encoded":   func(h http.Header) { h.Set("Content-Encoding", "br") },
		"not named, and in chunks": func(h http.Header) { h.Set("Transfer-Encoding", "chunked") },
	} {
		t.Run("A repeat is told of a body the type that the first client was told, "+name, func(t *testing.T) {
			t.Parallel()
			overAll(t, func(t *testing.T, proto string) {
				s := newService(t, settings{})
				srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
					set(w.Header())
					io.WriteString(w, page)
				}))
				first := post(t, srv.Client(), srv.URL, "k1", "", "Accept-Encoding", "br")
				again := post(t, srv.Client(), srv.URL, "k1", "", "Accept-Encoding", "br")
				assert.True(t, again.replayed(), "it is a replay")
				assert.Equal(t, again.text, page)
				assert.Equal(t, again.Header["Content-Type"], first.Header["Content-Type"])
				if name == "not named" {
					assert.Equal(t, first.Header.Get("Content-Type"), "text/html; charset=utf-8")
				}
			})
		})
	}

	t.Run("A type that a layer outside has set is nobody else's to set", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
		srv := serve(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/csv")
			inner.ServeHTTP(w, r)
		}))
		for range 2 {
			assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").Header.Get("Content-Type"), "text/csv")
		}
	})
}

// gzipped is the ResponseWriter of a layer that compresses.
type gzipped struct {
	http.ResponseWriter

	zip *gzip.Writer
}

func (w *gzipped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *gzipped) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Encoding", "gzip")
	w.ResponseWriter.WriteHeader(status)
}

func (w *gzipped) Write(b []byte) (int, error) { return w.zip.Write(b) }
