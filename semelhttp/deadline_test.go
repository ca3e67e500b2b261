package semelhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

// watch fails the test when the client's ResponseWriter is used after the
// middleware has returned.
func watch(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		watched := &watchedWriter{ResponseWriter: w, t: t}
		defer watched.returned.Store(true)
		h.ServeHTTP(watched, r)
	})
}

type watchedWriter struct {
	http.ResponseWriter

	t        *testing.T
	returned atomic.Bool
}

func (w *watchedWriter) check(call string) {
	if w.returned.Load() {
		w.t.Errorf("%s was called after the request was answered", call)
	}
}

func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watchedWriter) Header() http.Header {
	w.check("Header")
	return w.ResponseWriter.Header()
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	w.check("Write")
	return w.ResponseWriter.Write(b)
}

func (w *watchedWriter) WriteHeader(status int) {
	w.check("WriteHeader")
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) FlushError() error {
	w.check("Flush")
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func TestPastTheDeadline(t *testing.T) {
	t.Parallel()
	short := settings{recovery: semel.Hold(), guard: semel.Config{HandlerDeadline: 3 * time.Second}}

	t.Run("A handler past its deadline no longer reaches the client, and its reply is kept for the retry", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, short)
			var flushed, deadline error
			srv := memhttp.New(t, watch(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				time.Sleep(time.Second)
				w.Header().Set("X-Late", "yes")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusCreated)
				io.WriteString(w, "late, ")
				rc := http.NewResponseController(w)
				flushed, deadline = rc.Flush(), rc.SetWriteDeadline(time.Now())
				_, err := io.WriteString(w, "but whole")
				assert.NoError(t, err)
			})))
			first := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.Equal(t, first.StatusCode, http.StatusServiceUnavailable)
			assert.Equal(t, first.Header.Get("X-Late"), "")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			assert.True(t, flushed != nil && deadline != nil, "flush and deadline fail: %v, %v", flushed, deadline)
			again := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.True(t, again.replayed(), "the retry gets a replay")
			assert.Equal(t, again.text, "late, but whole")
			assert.Equal(t, again.Header.Get("X-Late"), "yes")
		})
	})

	t.Run("A stream that is cut at the deadline cannot be taken for a whole reply", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, short)
			var late error
			srv := memhttp.New(t, watch(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "one\n")
				http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Second)
				_, late = io.WriteString(w, "two\n")
			})))
			got, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, got.text, "one\n")
			time.Sleep(3 * time.Second)
			synctest.Wait()
			assert.True(t, late != nil, "the handler's late write fails")
			again := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.Equal(t, again.outcome(), "reply-not-kept")
		})
	})

	t.Run("A flush that the deadline overtakes sends nothing", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, short)
			s.store.set(func(s *faultyStore) { s.slow = 2 * time.Second })
			var flushed error
			srv := memhttp.New(t, watch(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "one\n")
				time.Sleep(2 * time.Second)
				flushed = http.NewResponseController(w).Flush()
			})))
			got := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.Equal(t, got.StatusCode, http.StatusServiceUnavailable)
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.True(t, flushed != nil, "the flush fails")
		})
	})

	t.Run("A handler that ends its goroutine leaves a broken connection and an unknown outcome", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, short)
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(http.ResponseWriter, *http.Request) { runtime.Goexit() }))
			_, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
			assert.True(t, err != nil, "the client sees a broken connection")
			rec, err := s.guard.Get(t.Context(), "orders:anonymous", "k1")
			assert.NoError(t, err)
			assert.Equal(t, rec.State, semel.StateUnknown)
		})
	})
}

func TestStreaming(t *testing.T) {
	t.Parallel()

	t.Run("A flush that cannot be recorded sends nothing, and the reply is kept whole", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		s.store.set(func(s *faultyStore) { s.extend = errors.New("connection refused") })
		var flushed error
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "one\n")
			flushed = http.NewResponseController(w).Flush()
			io.WriteString(w, "two\n")
		}))
		first := post(t, srv.Client(), srv.URL(), "k1", "")
		assert.ErrorIs(t, flushed, semel.ErrStoreUnavailable)
		assert.Equal(t, first.ContentLength, int64(8))
		again := post(t, srv.Client(), srv.URL(), "k1", "")
		assert.True(t, again.replayed(), "the reply was kept")
		assert.Equal(t, again.text, "one\ntwo\n")
	})

	t.Run("A stream whose end cannot be saved is cut off", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{})
			s.store.set(func(s *faultyStore) { s.finish = errors.New("connection refused") })
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "one\n")
				http.NewResponseController(w).Flush()
			}))
			_, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
	})

	t.Run("What was written before the first flush goes out with it, also from the temporary file", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{mw: semelhttp.Config{MaxReplyBody: 4}})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
			for _, part := range []string{"one", "two", "three"} {
				io.WriteString(w, part)
			}
			http.NewResponseController(w).Flush()
			io.WriteString(w, "four")
		}))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").text, "onetwothreefour")
	})
}

func TestLiveClaimIsNotStolen(t *testing.T) {
	t.Parallel()
	t.Run("Work that runs longer than its lease keeps the key", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(2 * time.Minute)
				s.created(w, r)
			}))
			first := make(chan reply)
			go func() { first <- post(t, srv.Client(), srv.URL(), "k1", "") }()
			for _, wait := range []time.Duration{time.Second, 40 * time.Second, time.Minute} {
				time.Sleep(wait)
				got := post(t, srv.Client(), srv.URL(), "k1", "")
				assert.Equal(t, got.outcome(), "in-progress")
			}
			assert.Equal(t, (<-first).StatusCode, http.StatusCreated)
			assert.Equal(t, s.runCount(), 1)
		})
	})
}

func TestReplacedWorker(t *testing.T) {
	t.Parallel()
	for claim, stream := range map[string]bool{
		"Whoever was replaced shows the reply of its successor": false,
		"Whoever has begun to reply is not replaced":            true,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, settings{})
				srv := memhttp.New(t, watch(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
					if s.runCount() > 0 { // the successor
						s.created(w, r)
						return
					}
					s.ran()
					io.WriteString(w, "of the first\n")
					if stream {
						http.NewResponseController(w).Flush()
					}
					s.store.set(func(s *faultyStore) { s.extend = errors.New("connection refused") })
					<-r.Context().Done() // the lease has ended
					assert.ErrorIs(t, context.Cause(r.Context()), semel.ErrSuperseded)
					time.Sleep(time.Minute)
				})))
				type answer struct {
					reply

					err error
				}
				first := make(chan answer)
				go func() {
					got, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
					first <- answer{got, err}
				}()
				time.Sleep(45 * time.Second)
				second := post(t, srv.Client(), srv.URL(), "k1", "")
				replaced := <-first
				if stream {
					assert.Equal(t, second.outcome(), "unknown")
					assert.NoError(t, replaced.err)
					assert.Equal(t, s.runCount(), 1)
					return
				}
				assert.Equal(t, second.outcome(), "executed")
				assert.NoError(t, replaced.err)
				assert.True(t, replaced.replayed(), "the first client gets a replay")
				assert.Equal(t, replaced.text, second.text)
				assert.Equal(t, s.runCount(), 2)
			})
		})
	}
}

func TestStoreDown(t *testing.T) {
	t.Parallel()
	t.Run("A store that hangs is given up within its limit, nothing runs, and keyless requests are served", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{guard: semel.Config{StoreTimeout: 2 * time.Second}})
			s.store.set(func(s *faultyStore) { s.beginFor = 30 * time.Second })
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{KeyOptional: true}, s.created))
			began := time.Now()
			got := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.Equal(t, got.StatusCode, http.StatusServiceUnavailable)
			assert.Equal(t, got.Header.Get("Retry-After"), "5")
			assert.Equal(t, time.Since(began), 2*time.Second)
			assert.Equal(t, s.runCount(), 0)
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "", "").StatusCode, http.StatusCreated)
			s.store.set(func(s *faultyStore) { s.beginFor = 0 })
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "executed")
			assert.Equal(t, s.runCount(), 2)
		})
	})
}
