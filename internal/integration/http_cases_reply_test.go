package integration

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// selling serves a handler that sells, and then answers by h.
func selling(t testing.TB, s *shop, proto string, route semelhttp.Route, h http.HandlerFunc) server {
	t.Helper()
	return serve(t, proto, s.protect(t, route, func(w http.ResponseWriter, r *http.Request) {
		if _, sold := s.sell(t, w, r); sold {
			h(w, r)
		}
	}))
}

func replyCases(all *httpCases) {
	all.add("replay-fidelity: Status, header and body of the repeat are those of the first", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		for _, want := range []string{executed, replayed} {
			got := send(t, srv, ask{})
			assert.Equal(t, got.told(), want)
			assert.Equal(t, got.Header.Get("Location"), "/orders/1")
			assert.Equal(t, got.Header.Get("ETag"), `"v1"`)
			assert.Equal(t, got.Header.Get("Content-Type"), "application/json; charset=utf-8")
			assert.Equal(t, got.text, "{\"id\":1}\n")
		}
		s.sold(t, 1)
	})

	all.add("replay-header-leak: What belongs to one session is neither saved nor replayed", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		private := map[string]string{
			"Set-Cookie": "sid=old; HttpOnly", "Www-Authenticate": "Basic", "Authentication-Info": "x",
			"Proxy-Authenticate": "Basic", "Age": "5",
		}
		srv := selling(t, s, overHTTP1, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range private {
				w.Header().Set(name, value)
			}
			w.WriteHeader(http.StatusCreated)
		})
		first, again := send(t, srv, ask{}), send(t, srv, ask{})
		assert.Equal(t, again.told(), replayed)
		rec, err := s.guard.Get(t.Context(), shopScope, "K1")
		assert.NoError(t, err)
		for name, value := range private {
			assert.Equal(t, first.Header.Get(name), value, "the first client's %s", name)
			assert.True(t, again.Header[name] == nil, "%s is replayed", name)
			assert.True(t, rec.Reply.Header[name] == nil, "%s is saved", name)
		}
		s.sold(t, 1)
	})

	all.add("truncated-response: The first client gets every byte, and a repeat all or none", func(t *testing.T, on shopWay) {
		const limit = 64 << 10
		s := newShop(t, on, shopSettings{mw: semelhttp.Config{MaxReplyBody: limit}})
		srv := selling(t, s, overHTTP1, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			size, err := strconv.Atoi(r.URL.Query().Get("size"))
			assert.NoError(t, err)
			io.WriteString(w, strings.Repeat("x", size))
		})
		sizes := []int{limit - 1, limit, limit + 1, 1 << 20}
		for _, size := range sizes {
			o := ask{target: fmt.Sprint("/?size=", size)}.keyed(fmt.Sprint("K", size))
			first, again := send(t, srv, o), send(t, srv, o)
			assert.Equal(t, first.told(), "200 executed", "%d bytes", size)
			assert.Equal(t, len(first.text), size)
			if size <= limit {
				assert.Equal(t, again.told(), "200 replayed", "%d bytes", size)
				assert.True(t, again.text == first.text, "the repeat has the same %d bytes", size)
			} else {
				assert.Equal(t, again.told(), "409 reply-not-kept", "%d bytes", size)
				assert.Contains(t, again.text, `"originalStatus":200`)
			}
		}
		s.sold(t, len(sizes))
	})

	for _, status := range []int{http.StatusNoContent, http.StatusAccepted, http.StatusNotModified} {
		all.add("empty-body: A reply without a body is a reply, "+strconv.Itoa(status), func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{})
			srv := selling(t, s, overHTTP1, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				if status == http.StatusAccepted {
					w.Header().Set("Content-Length", "0")
				}
				w.WriteHeader(status)
			})
			for _, want := range []string{"executed", "replayed"} {
				got := send(t, srv, ask{})
				assert.Equal(t, got.told(), fmt.Sprint(status, " ", want))
				assert.Equal(t, got.text, "")
				assert.Equal(t, got.ContentLength, int64(0))
				assert.Equal(t, got.Header.Get("Content-Length") == "0", status == http.StatusAccepted, "a length is named")
			}
			s.sold(t, 1)
		})
	}

	all.add("interim-1xx: An early hint is passed on, and is not the reply", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
			s.runs.Add(1)
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "no")
		}))
		var hints []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, h.Get("Link")))
			return nil
		}})
		for _, want := range []string{"404 executed", "404 replayed"} {
			got, err := try(ctx, srv, ask{})
			assert.NoError(t, err)
			assert.Equal(t, got.told(), want)
			assert.Equal(t, got.text, "no")
			assert.Equal(t, got.Header.Get("Link"), "")
		}
		assert.Equal(t, hints, []string{"103</a.css>; rel=preload"})
		assert.Equal(t, s.runs.Load(), int64(1), "runs")
	})

	all.add("compression: A reply saved compressed goes only to who can read it", compression)
	framingCases(all)
	streamCase(all)
}

func compression(t *testing.T, on shopWay) {
	s := newShop(t, on, shopSettings{})
	srv := selling(t, s, overHTTP1, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		io.WriteString(zip, "hello")
		assert.NoError(t, zip.Close())
	})
	for _, c := range []struct{ accepted, want string }{
		{"gzip", "200 executed"},
		{"identity", "406 reply-not-kept"},
		{"gzip;q=0", "406 reply-not-kept"},
		{"br, gzip;q=0.5", "200 replayed"},
	} {
		got := send(t, srv, ask{}.with("Accept-Encoding", c.accepted))
		assert.Equal(t, got.told(), c.want, "Accept-Encoding %s", c.accepted)
		if got.StatusCode != http.StatusOK {
			assert.Equal(t, got.Header.Get("Content-Encoding"), "")
			assert.Contains(t, got.text, `"code":"reply-not-acceptable"`)
			continue
		}
		assert.Equal(t, got.Header.Values("Content-Encoding"), []string{"gzip"})
		assert.Equal(t, got.Header.Get("Vary"), "Accept-Encoding")
		plain, err := gzip.NewReader(strings.NewReader(got.text))
		assert.NoError(t, err)
		text, err := io.ReadAll(plain)
		assert.NoError(t, err)
		assert.Equal(t, string(text), "hello")
	}
	s.sold(t, 1)
}

func framingCases(all *httpCases) {
	for _, proto := range []string{overHTTP1, overHTTP2} {
		all.add("framing-headers: What belongs to one connection is not said of another, over "+proto, func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{})
			hop := map[string]string{
				"Connection": "close, X-Hop", "X-Hop": "one", "Keep-Alive": "timeout=5", "Proxy-Connection": "keep-alive",
				"Te": "trailers", "Upgrade": "other/1", "Content-Length": "5",
			}
			srv := selling(t, s, proto, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range hop {
					w.Header().Set(name, value)
				}
				io.WriteString(w, "hello")
			})
			assert.Equal(t, send(t, srv, ask{}).text, "hello")
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), "200 replayed")
			assert.Equal(t, again.text, "hello")
			assert.Equal(t, again.ContentLength, int64(5))
			assert.True(t, !again.Close, "the connection stays open")
			rec, err := s.guard.Get(t.Context(), shopScope, "K1")
			assert.NoError(t, err)
			for name := range hop {
				assert.True(t, name == "Content-Length" || again.Header[name] == nil, "%s is replayed", name)
				assert.True(t, rec.Reply.Header[name] == nil, "%s is saved", name)
			}
			s.sold(t, 1)
		})

		all.add("framing-headers: A reply in chunks leaves nothing of its framing to the repeat, over "+proto, func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{})
			srv := selling(t, s, proto, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				for _, part := range []string{"one ", "two"} {
					io.WriteString(w, part)
					assert.NoError(t, http.NewResponseController(w).Flush())
				}
			})
			want := "409 reply-not-kept"
			if on.mode != semel.Leased { // what is not committed is not sent: the flush waits
				want = "200 replayed"
			}
			assert.Equal(t, send(t, srv, ask{}).text, "one two")
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), want)
			assert.Equal(t, again.ContentLength, int64(len(again.text)))
			assert.Equal(t, len(again.TransferEncoding), 0)
			s.sold(t, 1)
		})
	}
}

func streamCase(all *httpCases) {
	all.addBut(unlessLeased, "streaming: An event reaches the client while the handler runs, and a repeat does not run", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		goOn := make(chan struct{})
		srv := selling(t, s, overHTTP1, semelhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: one\n\n")
			assert.NoError(t, http.NewResponseController(w).Flush())
			<-goOn
			io.WriteString(w, "data: two\n\n")
		})
		open := map[string]*http.Response{}
		for _, key := range []string{"", "K1"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url, nil)
			assert.NoError(t, err)
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			resp, err := srv.client.Do(req)
			assert.NoError(t, err)
			defer resp.Body.Close()
			event, err := bufio.NewReaderSize(resp.Body, 16).Peek(len("data: one\n\n"))
			assert.NoError(t, err)
			assert.Equal(t, string(event), "data: one\n\n", "key %q", key)
			open[key] = resp
		}
		req := ask{}.with("Content-Type")
		assert.Equal(t, send(t, srv, req).told(), "409 in-progress", "while it streams")
		close(goOn)
		for key, resp := range open {
			rest, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, string(rest), "data: two\n\n", "key %q", key)
		}
		assert.Equal(t, send(t, srv, req).told(), "409 reply-not-kept")
		s.sold(t, 2) // one of them had no key
	})
}
