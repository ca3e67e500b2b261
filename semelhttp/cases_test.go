package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

func TestTenantScope(t *testing.T) {
	t.Parallel()
	t.Run("Two sessions with one key have an operation each, whatever tells them apart", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{scope: func(r *http.Request) (string, error) {
			session, err := r.Cookie("session")
			if err != nil {
				return "", err
			}
			return "session:" + session.Value, nil
		}})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
		one := post(t, srv.Client(), srv.URL(), "k1", "", "Cookie", "session=p1")
		two := post(t, srv.Client(), srv.URL(), "k1", "", "Cookie", "session=p2")
		assert.Equal(t, one.text, "{\"id\":1}\n")
		assert.Equal(t, two.text, "{\"id\":2}\n")
		none := post(t, srv.Client(), srv.URL(), "k1", "")
		assert.Equal(t, none.StatusCode, http.StatusForbidden)
		assert.Equal(t, s.runCount(), 2)
	})
}

func TestAuthOrder(t *testing.T) {
	t.Parallel()
	t.Run("A caller whose right was withdrawn gets no saved reply, and the refusal is not saved", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		inner := s.protect(t, semelhttp.Route{}, s.created)
		var status atomic.Int64
		srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refused := int(status.Load()); refused != 0 {
				http.Error(w, "not you", refused)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		first := post(t, srv.Client(), srv.URL(), "k1", "")
		for _, refused := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			status.Store(int64(refused))
			got := post(t, srv.Client(), srv.URL(), "k1", "")
			assert.Equal(t, got.StatusCode, refused)
			assert.Equal(t, got.text, "not you\n")
		}
		status.Store(0)
		again := post(t, srv.Client(), srv.URL(), "k1", "")
		assert.True(t, again.replayed(), "with the right back it is a replay")
		assert.Equal(t, again.text, first.text)
	})

	t.Run("BeforeReplay sees the request and the record, and only before a replay", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		var seen []string
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{
			BeforeReplay: func(r *http.Request, rec semel.Record) error {
				seen = append(seen, fmt.Sprint(r.Header.Get("X-Role"), rec.Reply.Status))
				if r.Header.Get("X-Role") != "owner" {
					return errors.New("the role was lost")
				}
				return nil
			},
		}, s.created))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "", "X-Role", "owner").outcome(), "executed")
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "", "X-Role", "guest").StatusCode, http.StatusForbidden)
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "", "X-Role", "owner").outcome(), "replayed")
		assert.Equal(t, seen, []string{"guest201", "owner201"})
	})
}

func TestAmbiguousFailure(t *testing.T) {
	t.Parallel()
	// failFirst turns the first success into an error 502.
	failFirst := func(h http.Handler) http.Handler {
		first := true
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !first {
				h.ServeHTTP(w, r)
				return
			}
			first = false
			h.ServeHTTP(&drop{header: http.Header{}}, r)
			http.Error(w, "bad gateway", http.StatusBadGateway)
		})
	}

	t.Run("A layer outside that spoils the reply does not spoil the record", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		srv := memhttp.New(t, failFirst(s.protect(t, semelhttp.Route{}, s.created)))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").StatusCode, http.StatusBadGateway)
		again := post(t, srv.Client(), srv.URL(), "k1", "")
		assert.True(t, again.replayed(), "the retry is a replay")
		assert.Equal(t, s.runCount(), 1)
	})

	t.Run("Of a layer inside, what it answers is what counts", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{recovery: semel.Hold()})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, failFirst(http.HandlerFunc(s.created)).ServeHTTP))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "unknown")
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").StatusCode, http.StatusConflict)
		assert.Equal(t, s.runCount(), 1)
	})
}

func TestFingerprintPolicies(t *testing.T) {
	t.Parallel()
	older := fingerprint.Config{Headers: []string{"X-Old"}}

	// restarted is the service with another policy over the same store.
	restarted := func(t *testing.T, s *service, older ...fingerprint.Config) *memhttp.Server {
		t.Helper()
		mw, err := semelhttp.New(s.guard, callerScope, semelhttp.Config{Logger: quiet, OlderFingerprints: older})
		assert.NoError(t, err)
		h, err := mw.Protect(http.HandlerFunc(s.created), semelhttp.Route{Name: "orders"})
		assert.NoError(t, err)
		return memhttp.New(t, h)
	}

	t.Run("A record of an older policy is found by the same request while that policy is loaded", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		before := memhttp.New(t, s.protect(t, semelhttp.Route{Headers: older.Headers}, s.created))
		post(t, before.Client(), before.URL(), "k1", `{"a":1}`)
		after := restarted(t, s, older)
		assert.Equal(t, post(t, after.Client(), after.URL(), "k1", `{"a": 1}`).outcome(), "replayed")
		assert.Equal(t, post(t, after.Client(), after.URL(), "k1", `{"a": 2}`).outcome(), "key-reused")
	})

	t.Run("A record of an unknown policy is refused with a reason of its own", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		before := memhttp.New(t, s.protect(t, semelhttp.Route{Headers: older.Headers}, s.created))
		post(t, before.Client(), before.URL(), "k1", `{"a":1}`)
		after := restarted(t, s)
		got := post(t, after.Client(), after.URL(), "k1", `{"a": 1}`)
		assert.Equal(t, got.StatusCode, http.StatusUnprocessableEntity)
		assert.Contains(t, got.text, `"reason":"unknown-policy"`)
		assert.Equal(t, s.runCount(), 1)
	})

	t.Run("Where the route says so, another host is another request", func(t *testing.T) {
		t.Parallel()
		for _, host := range []bool{true, false} {
			s := newService(t, settings{})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{Host: host}, s.created))
			post(t, srv.Client(), srv.URL(), "k1", "")
			got := post(t, srv.Client(), "http://other.test", "k1", "")
			assert.Equal(t, got.outcome() == "key-reused", host)
		}
	})
}

func TestOperationInTheHandler(t *testing.T) {
	t.Parallel()
	t.Run("The handler finds its operation id, and a retry has the same", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		var ids []string
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			op, ok := semel.OperationFrom(r.Context())
			assert.True(t, ok, "there is an operation")
			ids = append(ids, fmt.Sprint(op.ID, op.Trace))
			w.WriteHeader(http.StatusInternalServerError)
		}))
		trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		for _, sent := range []string{trace, "<script>"} {
			post(t, srv.Client(), srv.URL(), "k1", "", "Traceparent", sent)
		}
		post(t, srv.Client(), srv.URL(), "k2", "", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0X")
		first := semel.NewOperationID("semel", "orders:anonymous", "k1", 0).String() + trace
		second := semel.NewOperationID("semel", "orders:anonymous", "k2", 0).String()
		assert.Equal(t, ids, []string{first, first, second})
	})
}

func TestPassThrough(t *testing.T) {
	t.Parallel()
	t.Run("An unprotected request keeps the server's own ResponseWriter, and streams unbuffered", func(t *testing.T) {
		t.Parallel()
		s := newService(t, settings{})
		var writers []string
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, r *http.Request) {
			writers = append(writers, fmt.Sprintf("%T", w))
			io.Copy(w, r.Body)
		}))
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "", "hello").text, "hello")
		post(t, srv.Client(), srv.URL(), "k1", "", "Content-Type", "Application/gRPC")
		post(t, srv.Client(), srv.URL(), "k1", "")
		assert.Equal(t, writers, []string{"*http.response", "*http.response", "*semelhttp.recorder"})
	})
}
