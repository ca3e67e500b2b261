package semelhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

// lines is a logger's output.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func TestLog(t *testing.T) {
	t.Parallel()

	t.Run("A keyed request has one line with all there is to find it by", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{mw: semelhttp.Config{Logger: log.logger()}})
			assert.Equal(t, log.take(), "level=WARN msg=\"semel: the store protects this process alone, and forgets all with it\" store_class=best-effort\n")
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
			post(t, srv.Client(), srv.URL(), "k1", "")
			synctest.Wait()
			assert.Equal(t, log.take(), "level=INFO msg=\"semel: request\" route=orders outcome=executed status=201 "+
				"idempotency_key=6ab9f1eb8f7d scope_digest=c6fb6928ae56 operation_id="+
				semel.NewOperationID("semel", "orders:anonymous", "k1", 0).String()+" attempt=1 duration=0s\n")
		})
	})

	t.Run("The level says who has to look", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{mw: semelhttp.Config{Logger: log.logger()}})
			fail := true
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				if fail {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				s.created(w, r)
			}))
			expect := func(level, outcome string) {
				synctest.Wait()
				assert.Contains(t, log.take(), "level="+level+` msg="semel: request" route=orders outcome=`+outcome)
			}
			post(t, srv.Client(), srv.URL(), "k1", "")
			expect("WARN", "unknown")
			fail = false
			post(t, srv.Client(), srv.URL(), "k1", "")
			expect("WARN", "executed") // a takeover
			post(t, srv.Client(), srv.URL(), "k2", "")
			expect("INFO", "executed")
			post(t, srv.Client(), srv.URL(), "k2", "")
			expect("DEBUG", "replayed")
			post(t, srv.Client(), srv.URL(), "k2", "other")
			expect("INFO", "key-reused")
			post(t, srv.Client(), srv.URL(), "", "")
			expect("DEBUG", "released")
			s.store.set(func(s *faultyStore) { s.beginErr = errors.New("connection refused") })
			post(t, srv.Client(), srv.URL(), "k2", "")
			expect("ERROR", "released")
		})
	})

	t.Run("A takeover says so, also where the transaction holds all the work", func(t *testing.T) {
		t.Parallel()
		for level, died := range map[string]bool{"WARN": true, "INFO": false} {
			synctest.Test(t, func(t *testing.T) {
				var log lines
				s := newService(t, settings{recovery: semel.Resume(semel.Forever), mw: semelhttp.Config{Logger: log.logger()}})
				srv := memhttp.New(t, s.protect(t, semelhttp.Route{Mode: semel.Joined, AllInTx: true}, func(w http.ResponseWriter, r *http.Request) {
					if s.ran() == 1 {
						if died {
							s.store.set(func(s *faultyStore) { s.finish = errors.New("the process was killed") })
						}
						w.WriteHeader(http.StatusInternalServerError) // rolls back
						return
					}
					s.created(w, r)
				}))
				post(t, srv.Client(), srv.URL(), "k1", "")
				s.store.set(func(s *faultyStore) { s.finish = nil })
				time.Sleep(semel.DefaultLease)
				log.take()
				post(t, srv.Client(), srv.URL(), "k1", "")
				synctest.Wait()
				got := log.take()
				assert.Contains(t, got, "level="+level+` msg="semel: request" route=orders outcome=executed status=201`)
				assert.Equal(t, strings.Contains(got, " attempt=2 takeover=true "), died, "a released key is no takeover: %s", got)
			})
		}
	})

	t.Run("A repeat that did not run is nobody's business, unless nobody knows the end or the key is misused", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			hmac, err := semelhttp.AuthorizationHMAC([]byte("0123456789abcdef"))
			assert.NoError(t, err)
			s := newService(t, settings{mw: semelhttp.Config{Logger: log.logger(), Credential: hmac, MaxReplyBody: 8}})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				if s.ran() == 1 {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				time.Sleep(10 * time.Second)
				io.WriteString(w, "more than is kept")
			}))
			expect := func(level, outcome string) {
				t.Helper()
				synctest.Wait()
				assert.Contains(t, log.take(), "level="+level+` msg="semel: request" route=orders outcome=`+outcome)
			}
			post(t, srv.Client(), srv.URL(), "k1", "")
			expect("WARN", "unknown")
			takeover := make(chan error)
			go func() {
				_, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
				takeover <- err
			}()
			synctest.Wait()
			post(t, srv.Client(), srv.URL(), "k1", "")
			expect("DEBUG", "in-progress")
			assert.NoError(t, <-takeover)
			expect("WARN", "executed")
			post(t, srv.Client(), srv.URL(), "k1", "")
			expect("DEBUG", "reply-not-kept")
			post(t, srv.Client(), srv.URL(), "k1", "", "Authorization", "Bearer other")
			expect("INFO", "key-reused")
		})
	})

	t.Run("A scope that cannot be used is logged with what is wrong with it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{
				scope: func(r *http.Request) (string, error) { return r.Header.Get("X-Scope"), nil },
				mw:    semelhttp.Config{Logger: log.logger()},
			})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
			for scope, want := range map[string]string{
				"":                        "the scope is empty",
				strings.Repeat("x", 1025): "the scope has 1025 bytes; the most is 1024",
			} {
				got := post(t, srv.Client(), srv.URL(), "k1", "", "X-Scope", scope)
				assert.Equal(t, got.StatusCode, http.StatusForbidden)
				synctest.Wait()
				assert.Contains(t, log.take(), `error="semel: `+want+`"`)
			}
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "", "X-Scope", strings.Repeat("x", 1024)).outcome(), "executed")
		})
	})

	t.Run("A handler that gives up by http.ErrAbortHandler is not logged as a panic", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{guard: semel.Config{Logger: log.logger()}, mw: semelhttp.Config{Logger: log.logger()}})
			for _, value := range []any{http.ErrAbortHandler, "out of paper"} {
				h := s.protect(t, semelhttp.Route{Name: fmt.Sprint(value)}, func(http.ResponseWriter, *http.Request) {
					panic(value) //nolint:forbidigo // that is the case.
				})
				_, err := do(memhttp.New(t, h).Client(), http.MethodPost, "http://mem.test", fmt.Sprint(value == "out of paper"), "")
				assert.True(t, err != nil, "the connection breaks")
				synctest.Wait()
				assert.Equal(t, strings.Count(log.take(), "handler panicked"), map[bool]int{true: 1}[value == "out of paper"])
			}
		})
	})

	t.Run("A handler that does not return is logged with what was saved of it, where it is to be found, and why", func(t *testing.T) {
		t.Parallel()
		ends := map[string]func(){
			"panic":  func() { panic("out of paper") },       //nolint:forbidigo // that is the case.
			"abort":  func() { panic(http.ErrAbortHandler) }, //nolint:forbidigo // that is the case.
			"goexit": runtime.Goexit,
		}
		for end, leave := range ends {
			for outcome, route := range map[string]semelhttp.Route{
				"released": {Mode: semel.Joined, AllInTx: true},
				"unknown":  {Mode: semel.Leased},
			} {
				synctest.Test(t, func(t *testing.T) {
					var log lines
					s := newService(t, settings{recovery: semel.Hold(), mw: semelhttp.Config{Logger: log.logger()}})
					srv := memhttp.New(t, s.protect(t, route, func(w http.ResponseWriter, r *http.Request) {
						openTx(r.Context())
						w.WriteHeader(http.StatusCreated)
						leave()
					}))
					_, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
					assert.True(t, err != nil, "the connection breaks")
					synctest.Wait()
					logged := log.take()
					id := semel.NewOperationID("semel", "orders:anonymous", "k1", 0).String()
					assert.Contains(t, logged, `msg="semel: request" route=orders outcome=`+outcome+" ", "%s", end)
					assert.Contains(t, logged, " operation_id="+id+" attempt=1 duration=")
					if end == "panic" {
						assert.Contains(t, logged, `level=ERROR msg="semel: handler panicked" route=orders operation_id=`+id+` attempt=1 panic="out of paper" stack="goroutine`)
						assert.Contains(t, logged, "log_test.go")
					}
				})
			}
		}
	})

	t.Run("A layer outside that answers a panic can pass on what became of the request", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{recovery: semel.Hold()})
		inner := s.protect(t, semelhttp.Route{Mode: semel.Joined, AllInTx: true}, func(http.ResponseWriter, *http.Request) {
			panic("out of paper") //nolint:forbidigo // that is the case.
		})
		srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				assert.Equal(t, recover(), any("out of paper"))
				w.WriteHeader(http.StatusInternalServerError)
			}()
			inner.ServeHTTP(w, r)
		}))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "released")
	})

	t.Run("With LogKeys the key itself is logged", func(t *testing.T) {
		t.Parallel()
		var log lines
		s := newService(t, settings{mw: semelhttp.Config{Logger: log.logger(), LogKeys: true}})
		h := s.protect(t, semelhttp.Route{}, s.created)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
		assert.NoError(t, err)
		r.Header.Set("Idempotency-Key", "k1")
		h.ServeHTTP(&drop{header: http.Header{}}, r)
		assert.Contains(t, log.take(), "idempotency_key=k1 ")
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	t.Run("Neither key, scope nor body is in any log line or error answer", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var log lines
			s := newService(t, settings{
				recovery: semel.Hold(),
				guard:    semel.Config{Logger: log.logger()},
				mw:       semelhttp.Config{Logger: log.logger()},
			})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				if bytes.Contains(body, []byte("panic")) {
					panic("out of paper") //nolint:forbidigo // that is the case.
				}
				s.created(w, r)
			}))
			var answers strings.Builder
			send := func(key, body string) {
				got, err := do(srv.Client(), http.MethodPost, srv.URL(), key, body, "X-Caller", "canary-caller")
				if err == nil {
					answers.WriteString(got.text)
				}
			}
			send("canary-7f3a", "canary-body")                       // success
			send("canary-7f3a", "canary-body")                       // replay
			send("canary-7f3a", "canary-body-2")                     // mismatch
			send("canary-7f3a canary", "canary-body")                // 400
			send(`"canary-7f3a`, "canary-body")                      // 400 of the other form
			send("canary-8", "canary-body panic")                    // panic
			send("canary-8", "canary-body panic")                    // unknown
			send("canary-9"+strings.Repeat("x", 300), "canary-body") // too long
			s.store.set(func(s *faultyStore) { s.finish = errors.New("connection refused") })
			send("canary-a", "canary-body") // the end cannot be saved
			send("canary-a", "canary-body") // in progress
			s.store.set(func(s *faultyStore) { s.beginErr = errors.New("connection refused") })
			send("canary-b", "canary-body") // the store is down
			synctest.Wait()
			logged := log.take()
			assert.Equal(t, strings.Count(logged, `msg="semel: request"`), 11, "one line a request")
			assert.True(t, !strings.Contains(logged, "canary"), "the log has a canary:\n%s", logged)
			assert.True(t, !strings.Contains(answers.String(), "canary"), "an answer has a canary:\n%s", answers.String())
		})
	})
}
