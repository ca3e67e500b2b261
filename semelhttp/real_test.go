package semelhttp_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// The protocols that a test on a real server runs over.
const (
	overHTTP1    = "HTTP/1.1"
	overHTTP2    = "HTTP/2.0"
	overClearTwo = "HTTP/2.0 in the clear"
)

// overAll runs a test on a real server over TCP, once with each protocol.
func overAll(t *testing.T, test func(t *testing.T, proto string)) {
	t.Helper()
	for _, proto := range []string{overHTTP1, overHTTP2, overClearTwo} {
		t.Run("over "+proto, func(t *testing.T) {
			t.Parallel()
			test(t, proto)
		})
	}
}

// serve serves h with proto, until the test ends.
func serve(t *testing.T, proto string, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = silentLog()
	if proto == overClearTwo {
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
		transport, ok := srv.Client().Transport.(*http.Transport)
		assert.True(t, ok, "the server's client has no http.Transport")
		transport.Protocols = srv.Config.Protocols
	} else {
		srv.EnableHTTP2 = proto == overHTTP2
		srv.StartTLS()
	}
	t.Cleanup(srv.Close)
	return srv
}

// silentLog is for servers whose handlers panic on purpose.
func silentLog() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRecorderOnRealServers(t *testing.T) {
	t.Parallel()

	t.Run("A flushed part reaches the client while the handler runs", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			goOn := make(chan struct{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				s.ran()
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, "data: one\n\n")
				assert.NoError(t, http.NewResponseController(w).Flush())
				<-goOn
				io.WriteString(w, "data: two\n\n")
			}))
			req := keyed(t.Context(), t, srv.URL, "k1", nil)
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			defer resp.Body.Close()
			assert.True(t, strings.HasPrefix(proto, resp.Proto), "got %s, want %s", resp.Proto, proto)
			first := make([]byte, len("data: one\n\n"))
			_, err = io.ReadFull(resp.Body, first)
			assert.NoError(t, err)
			assert.Equal(t, string(first), "data: one\n\n")
			close(goOn)
			rest, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, string(rest), "data: two\n\n")
			again := post(t, srv.Client(), srv.URL, "k1", "")
			assert.Equal(t, again.StatusCode, http.StatusConflict)
			assert.Equal(t, again.outcome(), "reply-not-kept")
			assert.Equal(t, s.runCount(), 1)
		})
	})

	t.Run("A handler that copies from a reader is recorded with its own status", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			text := strings.Repeat("0123456789", 10_000)
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				s.ran()
				w.WriteHeader(http.StatusCreated)
				n, err := io.Copy(w, iotest.HalfReader(strings.NewReader(text)))
				assert.NoError(t, err)
				assert.Equal(t, n, int64(len(text)))
			}))
			for range 2 {
				got := post(t, srv.Client(), srv.URL, "k1", "")
				assert.Equal(t, got.StatusCode, http.StatusCreated)
				assert.Equal(t, got.ContentLength, int64(len(text)))
				assert.True(t, got.text == text, "the whole text comes")
			}
			assert.Equal(t, s.runCount(), 1)
		})
	})

	t.Run("The connection cannot be hijacked", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				_, isHijacker := w.(http.Hijacker)
				_, _, err := http.NewResponseController(w).Hijack()
				fmt.Fprint(w, isHijacker, errors.Is(err, http.ErrNotSupported))
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").text, "false true")
		})
	})

	t.Run("What a handler sets about reading is granted: the body has been read", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				assert.NoError(t, rc.EnableFullDuplex())
				assert.NoError(t, rc.SetReadDeadline(time.Now().Add(-time.Hour)))
				io.WriteString(w, "you said ")
				_, err := io.Copy(w, r.Body)
				assert.NoError(t, err)
			})
			outside := &readingWriter{}
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				outside.ResponseWriter = w
				inner.ServeHTTP(outside, r)
			}))
			assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "word").text, "you said word")
			assert.Equal(t, outside.asked, []string{"read deadline"}, "that of BodyReadTimeout; what the handler sets goes no further")
		})
	})

	t.Run("Informational replies pass through, with headers of their own", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</a.css>; rel=preload")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Del("Link")
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, "no")
			})
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Outside", "yes")
				inner.ServeHTTP(w, r)
			}))
			var hints []string
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, fmt.Sprint(code, h.Get("Link"), h.Get("X-Outside")))
				return nil
			}}
			for want := range 2 {
				req := keyed(httptrace.WithClientTrace(t.Context(), trace), t, srv.URL, "k1", nil)
				resp, err := srv.Client().Do(req)
				assert.NoError(t, err)
				resp.Body.Close()
				assert.Equal(t, resp.StatusCode, http.StatusNotFound)
				assert.Equal(t, resp.Header.Values("X-Outside"), []string{"yes"})
				assert.Equal(t, resp.Header.Get("Link"), "")
				assert.Equal(t, resp.Header.Get("Idempotent-Replayed") == "true", want == 1)
			}
			assert.Equal(t, hints, []string{"103</a.css>; rel=preloadyes"})
		})
	})

	t.Run("Trailers reach the first client and make the reply not kept", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				io.WriteString(w, "body")
				if r.Header.Get("X-Stream") != "" {
					http.NewResponseController(w).Flush()
				}
				w.Header().Set("X-Sum", "42")
			}))
			for _, stream := range []string{"", "yes"} {
				got := post(t, srv.Client(), srv.URL, "k"+stream, "", "X-Stream", stream)
				assert.Equal(t, got.text, "body")
				assert.Equal(t, got.Trailer.Get("X-Sum"), "42")
				again := post(t, srv.Client(), srv.URL, "k"+stream, "", "X-Stream", stream)
				assert.Equal(t, again.outcome(), "reply-not-kept")
			}
		})
	})

	t.Run("A panic ends the request as it would without the middleware, and the server stays up", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			for _, value := range []any{"out of paper", http.ErrAbortHandler} {
				s := newService(t, settings{})
				srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
					if s.ran() == 1 {
						panic(value) //nolint:forbidigo // that is the case.
					}
					io.WriteString(w, "second")
				}))
				_, err := do(srv.Client(), http.MethodPost, srv.URL, "k1", "")
				assert.True(t, err != nil, "the client of %v sees a broken connection", value)
				got := post(t, srv.Client(), srv.URL, "k1", "")
				assert.Equal(t, got.text, "second")
			}
		})
	})

	t.Run("A reply of many megabytes arrives whole and is not kept", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{mw: semelhttp.Config{MaxReplyBody: 1 << 16}})
			const size = 20 << 20
			chunk := make([]byte, 1<<16)
			for i := range chunk {
				chunk[i] = byte(i * 7)
			}
			want := sha256.New()
			for range size / len(chunk) {
				want.Write(chunk)
			}
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				s.ran()
				for range size / len(chunk) {
					w.Write(chunk)
				}
			}))
			req := keyed(t.Context(), t, srv.URL, "k1", nil)
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			defer resp.Body.Close()
			got := sha256.New()
			n, err := io.Copy(got, resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, n, int64(size))
			assert.Equal(t, got.Sum(nil), want.Sum(nil))
			again := post(t, srv.Client(), srv.URL, "k1", "")
			assert.Equal(t, again.outcome(), "reply-not-kept")
			assert.Equal(t, s.runCount(), 1)
		})
	})

	t.Run("A write beyond the declared length is refused, and the reply is the declared one", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				s.ran()
				w.Header().Set("Content-Length", "5")
				_, err := io.WriteString(w, "hello")
				assert.NoError(t, err)
				_, err = io.WriteString(w, "\n")
				assert.ErrorIs(t, err, http.ErrContentLength)
			}))
			for range 2 {
				assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").text, "hello")
			}
			assert.Equal(t, s.runCount(), 1)
		})
	})

	t.Run("A body that its status does not allow is refused", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
				n, err := io.WriteString(w, "hello")
				assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
				assert.Equal(t, n, 0)
			}))
			for range 2 {
				assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", "").StatusCode, http.StatusNoContent)
			}
			rec, err := s.guard.Get(t.Context(), "orders:anonymous", "k1")
			assert.NoError(t, err)
			assert.Equal(t, len(rec.Reply.Body), 0)
		})
	})

	t.Run("The handler's form files are removed", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		var file string
		srv := serve(t, "HTTP/1.1", s.protect(t, semelhttp.Route{}, func(_ http.ResponseWriter, r *http.Request) {
			assert.NoError(t, r.ParseMultipartForm(1))
			f, err := r.MultipartForm.File["file"][0].Open()
			assert.NoError(t, err)
			defer f.Close()
			named, ok := f.(interface{ Name() string })
			assert.True(t, ok, "the part is in a file")
			file = named.Name()
		}))
		body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" + strings.Repeat("x", 1<<15) + "\r\n--b--\r\n"
		post(t, srv.Client(), srv.URL, "k1", body, "Content-Type", "multipart/form-data; boundary=b")
		assert.True(t, file != "" && !exists(file), "the file %s is gone", file)
	})
}

func TestClientDisconnect(t *testing.T) {
	t.Parallel()
	t.Run("A client that hangs up neither cancels nor undoes the work, and its retry gets the reply", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			begun, gone, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			outer := make(chan context.Context, 1)
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				close(begun)
				<-gone
				assert.NoError(t, r.Context().Err(), "the work's context lives on")
				s.created(w, r)
			})
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				outer <- r.Context()
				inner.ServeHTTP(w, r)
			}))
			ctx, hangUp := context.WithCancel(t.Context())
			req := keyed(ctx, t, srv.URL, "k1", strings.NewReader(`{"sku":"A"}`))
			go func() {
				<-begun
				hangUp()
			}()
			_, err := srv.Client().Do(req) //nolint:bodyclose // there is no reply.
			assert.ErrorIs(t, err, context.Canceled)
			<-(<-outer).Done() // the server has noticed
			close(gone)
			<-done
			var got reply
			assert.Eventually(t, "the end of the first request is saved", func() bool {
				got = post(t, srv.Client(), srv.URL, "k1", `{"sku":"A"}`)
				<-outer
				return got.outcome() != "in-progress"
			})
			assert.Equal(t, got.outcome(), "replayed")
			assert.Equal(t, got.StatusCode, http.StatusCreated)
			assert.Equal(t, s.runCount(), 1)
		})
	})
}

func TestConcurrentClaims(t *testing.T) {
	t.Parallel()
	t.Run("Of sixty-four requests at once one runs, and the others are told so or get its reply", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			srv := serve(t, proto, s.protect(t, semelhttp.Route{}, s.created))
			var wg sync.WaitGroup
			outcomes := make(chan string, 64)
			for range 64 {
				wg.Go(func() {
					got, err := do(srv.Client(), http.MethodPost, srv.URL, "k1", `{"sku":"A"}`)
					if err != nil {
						outcomes <- err.Error()
						return
					}
					outcomes <- got.outcome()
				})
			}
			wg.Wait()
			close(outcomes)
			count := map[string]int{}
			for outcome := range outcomes {
				count[outcome]++
			}
			assert.Equal(t, count["executed"], 1)
			assert.Equal(t, count["executed"]+count["replayed"]+count["in-progress"], 64, "%v", count)
			assert.Equal(t, s.runCount(), 1)
		})
	})
}

func TestHeaderNameIsFoundInAnyCase(t *testing.T) {
	t.Parallel()
	overAll(t, func(t *testing.T, proto string) {
		s := newService(t, settings{})
		srv := serve(t, proto, s.protect(t, semelhttp.Route{}, s.created))
		for _, name := range []string{"IDEMPOTENCY-KEY", "idempotency-key"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
			assert.NoError(t, err)
			req.Header[name] = []string{"k1"}
			resp, err := srv.Client().Do(req)
			assert.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, resp.StatusCode, http.StatusCreated)
		}
		assert.Equal(t, s.runCount(), 1)
	})
}

func TestOutsideHeadersAreNotSaved(t *testing.T) {
	t.Parallel()
	t.Run("What layers outside have set is sent once, and is theirs anew on a replay", func(t *testing.T) {
		t.Parallel()
		overAll(t, func(t *testing.T, proto string) {
			s := newService(t, settings{})
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Add("Vary", "Accept")
				w.Header().Set("X-Replaced", "by the handler")
				w.Header().Del("X-Removed")
				io.WriteString(w, "hello")
			})
			request := 0
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request++
				w.Header().Set("Vary", "Origin")
				w.Header().Set("X-Request-Id", fmt.Sprint(request))
				w.Header().Set("X-Replaced", "by nobody")
				w.Header().Set("X-Removed", "not yet")
				inner.ServeHTTP(w, r)
			}))
			for n := range 2 {
				got := post(t, srv.Client(), srv.URL, "k1", "")
				assert.Equal(t, got.replayed(), n == 1)
				assert.Equal(t, got.Header.Values("Vary"), []string{"Origin", "Accept"})
				assert.Equal(t, got.Header.Values("X-Replaced"), []string{"by the handler"})
				assert.Equal(t, got.Header.Values("X-Request-Id"), []string{fmt.Sprint(n + 1)})
				assert.Equal(t, len(got.Header.Values("X-Removed")), n, "a header that was removed cannot be saved")
			}
			rec, err := s.guard.Get(t.Context(), "orders:anonymous", "k1")
			assert.NoError(t, err)
			assert.Equal(t, rec.Reply.Header, semel.Header{
				"Vary": {"Origin", "Accept"}, "X-Replaced": {"by the handler"}, "Content-Type": {"text/plain; charset=utf-8"},
			})
		})
	})
}

// readingWriter notes what it is asked about reading.
type readingWriter struct {
	http.ResponseWriter

	asked []string
}

func (w *readingWriter) SetReadDeadline(time.Time) error {
	w.asked = append(w.asked, "read deadline")
	return nil
}

func (w *readingWriter) EnableFullDuplex() error {
	w.asked = append(w.asked, "full duplex")
	return nil
}
