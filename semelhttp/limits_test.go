package semelhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

func TestResourceLimits(t *testing.T) {
	t.Parallel()

	t.Run("Large bodies without a length are refused before anything runs", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{mw: semelhttp.Config{MaxRequestBody: 1 << 16, ByteBudget: 8 << 20}})
		srv := serve(t, "HTTP/1.1", s.protect(t, semelhttp.Route{}, s.created))
		var wg sync.WaitGroup
		statuses := make(chan int, 50)
		for i := range 50 {
			body := struct{ io.Reader }{io.LimitReader(zeroes{}, 2<<20)} // hides its length
			req := keyed(t.Context(), t, srv.URL, "k"+strconv.Itoa(i), body)
			wg.Go(func() {
				resp, err := srv.Client().Do(req)
				if err != nil { // the connection was closed while the body was being sent
					return
				}
				resp.Body.Close()
				statuses <- resp.StatusCode
			})
		}
		wg.Wait()
		close(statuses)
		for status := range statuses {
			assert.True(t, status == http.StatusRequestEntityTooLarge || status == http.StatusServiceUnavailable, "got %d", status)
		}
		assert.Equal(t, s.runCount(), 0)
	})

	t.Run("A tighter limit set outside is answered the same way", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		srv := memhttp.New(t, http.MaxBytesHandler(s.protect(t, semelhttp.Route{}, s.created), 4))
		got := post(t, srv.Client(), srv.URL(), "k1", "12345")
		assert.Equal(t, got.StatusCode, http.StatusRequestEntityTooLarge)
		assert.Contains(t, got.text, "at most 4 bytes")
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "1234").outcome(), "executed")
	})

	t.Run("A body that trickles in is given up in time, and holds no claim", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{mw: semelhttp.Config{BodyReadTimeout: 10500 * time.Millisecond}}) // between two bytes
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
			began := time.Now()
			body := io.NopCloser(&trickle{left: 60})
			req := keyed(t.Context(), t, srv.URL(), "k1", body)
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, resp.StatusCode, http.StatusRequestTimeout)
			assert.Equal(t, time.Since(began), 10500*time.Millisecond)
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "executed")
			time.Sleep(time.Minute) // the client's body comes to its end
		})
	})

	t.Run("A server that is stricter about reading keeps its own limit", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created), func(srv *http.Server) { srv.ReadTimeout = 5500 * time.Millisecond })
			began := time.Now()
			req := keyed(t.Context(), t, srv.URL(), "k1", io.NopCloser(&trickle{left: 20}))
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, resp.StatusCode, http.StatusRequestTimeout)
			assert.Equal(t, time.Since(began), 5500*time.Millisecond)
			time.Sleep(time.Minute) // the client's body comes to its end
		})
	})

	t.Run("The deadline of reading does not cut the work short", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{mw: semelhttp.Config{BodyReadTimeout: time.Second}})
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Second)
				s.created(w, r)
			})
			var outside error
			srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner.ServeHTTP(w, r)
				outside = r.Context().Err()
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "body").outcome(), "executed")
			assert.NoError(t, outside)
		})
	})

	t.Run("The largest limits are no limit, in either direction", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{mw: semelhttp.Config{MaxRequestBody: math.MaxInt64, MaxReplyBody: math.MaxInt64, ByteBudget: math.MaxInt64}})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
		text := strings.Repeat("x", 100_000)
		for n := range 2 {
			got := post(t, srv.Client(), srv.URL(), "k1", text)
			assert.True(t, got.text == text, "the whole text comes, %q", got.outcome())
			assert.Equal(t, got.replayed(), n == 1)
		}
	})

	t.Run("Every way out gives its bytes back", func(t *testing.T) {
		t.Parallel()
		ways := map[string]http.HandlerFunc{
			"a reply":          func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 9000)) },
			"a large reply":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 20_000)) },
			"a stream":         func(w http.ResponseWriter, _ *http.Request) { http.NewResponseController(w).Flush() },
			"a panic":          func(http.ResponseWriter, *http.Request) { panic("out of paper") }, //nolint:forbidigo // that is the case.
			"an end by itself": func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
			"the deadline":     func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) },
		}
		for way, handler := range ways {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, settings{mw: semelhttp.Config{MaxRequestBody: 20_000, MaxReplyBody: 10_000, ByteBudget: 20_000}})
				srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, handler))
				body := strings.Repeat("b", 1000)
				for i := range 4 {
					got, err := do(srv.Client(), http.MethodPost, srv.URL(), "k"+strconv.Itoa(i), body)
					assert.True(t, err != nil || got.outcome() != "released", "request %d, %s: got %s", i, way, got.text)
					time.Sleep(time.Hour) // also the late handler is done
				}
				do(srv.Client(), http.MethodPost, srv.URL(), "k1", body)                     // a repeat
				synctest.Wait()                                                              // its bytes are given back after the last of its reply was sent
				do(srv.Client(), http.MethodPost, srv.URL(), "k9", strings.Repeat(body, 21)) // too large
				synctest.Wait()
				all := strings.Repeat("b", 19_000) // takes the whole budget
				got, err := do(srv.Client(), http.MethodPost, srv.URL(), "k10", all)
				assert.True(t, err != nil || got.outcome() != "released", "%s: got %s", way, got.text)
				time.Sleep(time.Hour)
			})
		}
	})

	t.Run("Under a full budget a reply still reaches its client, and is not kept", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{mw: semelhttp.Config{MaxRequestBody: 4096, MaxReplyBody: 8192, ByteBudget: 8192}})
			text := strings.Repeat("x", 8000)
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, text)
			}))
			got := post(t, srv.Client(), srv.URL(), "k1", "body")
			assert.True(t, got.text == text, "the whole text comes")
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "body").outcome(), "reply-not-kept")
		})
	})
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// trickle gives a byte a second.
type trickle struct{ left int }

func (r *trickle) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	time.Sleep(time.Second)
	p[0] = 'x'
	return 1, nil
}

func TestMemoryGrowth(t *testing.T) {
	t.Parallel()
	t.Run("Refused requests leave nothing behind", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		h := s.protect(t, semelhttp.Route{}, s.created)
		for i := range 5000 {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("x"))
			assert.NoError(t, err)
			r.Header.Set("Idempotency-Key", "a b"+strconv.Itoa(i))
			if i%2 == 0 {
				r.Header.Set("Idempotency-Key", strconv.Itoa(i))
				r.Header.Set("X-Caller", "nobody")
			}
			h.ServeHTTP(&drop{header: http.Header{}}, r)
		}
		assert.Equal(t, s.runCount(), 0)
		assert.Equal(t, s.counters.Snapshot(), map[string]int64{"request": 5000}, "the store was not asked")
	})
}

// drop is a ResponseWriter that forgets.
type drop struct{ header http.Header }

func (d *drop) Header() http.Header         { return d.header }
func (d *drop) Write(b []byte) (int, error) { return len(b), nil }
func (d *drop) WriteHeader(int)             {}

func TestBodyOfTheHandler(t *testing.T) {
	t.Parallel()

	t.Run("The handler reads what was sent, byte for byte, and how long it is", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				assert.Equal(t, r.ContentLength, int64(len(body)))
				w.Write(body)
			}))
			for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 18, 1 << 20} {
				text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
				for n := range 2 {
					got := post(t, srv.Client(), srv.URL, "k"+strconv.Itoa(size), text)
					assert.True(t, got.text == text, "%d bytes, request %d", size, n+1)
				}
			}
		})
	})

	t.Run("Of a body that came in chunks the handler knows the length", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, r.ContentLength, len(r.TransferEncoding))
			}))
			req := keyed(t.Context(), t, srv.URL, "k1", struct{ io.Reader }{strings.NewReader("12345")})
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, string(text), "5 0")
		})
	})

	t.Run("A body that is read after the handler returned is closed, and shows nobody else's", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		var leaked io.Reader
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(_ http.ResponseWriter, r *http.Request) {
			if leaked == nil {
				leaked = r.Body
			}
		}))
		post(t, srv.Client(), srv.URL(), "k1", "first")
		post(t, srv.Client(), srv.URL(), "k2", "second")
		var got bytes.Buffer
		_, err := got.ReadFrom(leaked)
		assert.True(t, errors.Is(err, http.ErrBodyReadAfterClose), "got error %v", err)
		assert.Equal(t, got.String(), "")
	})
}
