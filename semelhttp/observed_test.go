package semelhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

// told is an Observer that remembers the requests.
type told struct {
	mu       sync.Mutex
	requests []string
}

func (o *told) Observe(_ context.Context, e semel.Event) {
	if e.Kind != semel.EventRequest {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, strings.TrimSuffix(e.Route+" "+e.Outcome+", "+e.Problem, ", "))
}

func (o *told) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.requests
	o.requests = nil
	return all
}

func TestTheObserverIsToldOfEachRequestOnce(t *testing.T) {
	t.Parallel()
	observer := &told{}
	inner, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	store := &faultyStore{Store: inner}
	guard, err := semel.New(store, semel.Hold(), semel.Config{Observer: observer, Logger: quiet})
	assert.NoError(t, err)
	mw, err := semelhttp.New(guard, callerScope, semelhttp.Config{Logger: quiet})
	assert.NoError(t, err)
	answer := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("end") {
		case "panic":
			panic("the handler's own")
		case "503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "429":
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	required, err := mw.Protect(http.HandlerFunc(answer), semelhttp.Route{Name: "orders", Path: "/orders/{id}"})
	assert.NoError(t, err)
	optional, err := mw.Protect(http.HandlerFunc(answer), semelhttp.Route{Name: "notes", Path: "/notes", KeyOptional: true})
	assert.NoError(t, err)

	send := func(handler http.Handler, method, target string, header ...string) {
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		defer func() { recover() }()
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
		method  string
		target  string
		header  []string
		want    []string
	}{
		{"that ran", required, "POST", "/orders/7", []string{"Idempotency-Key", "k1"}, []string{"/orders/{id} executed"}},
		{"that is a repeat", required, "POST", "/orders/7", []string{"Idempotency-Key", "k1"}, []string{"/orders/{id} replayed"}},
		{"under a used key", required, "POST", "/orders/8", []string{"Idempotency-Key", "k1"}, []string{"/orders/{id} key-reused, key-reused"}},
		{"without a key", required, "POST", "/orders/7", nil, []string{"/orders/{id} released, key-missing"}},
		{"with a bad key", required, "POST", "/orders/7", []string{"Idempotency-Key", "a b"}, []string{"/orders/{id} released, key-invalid"}},
		{"of nobody", required, "POST", "/orders/7", []string{"Idempotency-Key", "k2", "X-Caller", "nobody"}, []string{"/orders/{id} released, scope-missing"}},
		{"whose handler does not know", required, "POST", "/orders/7?end=503", []string{"Idempotency-Key", "k3"}, []string{"/orders/{id} unknown"}},
		{"that nobody knows the end of", required, "POST", "/orders/7?end=503", []string{"Idempotency-Key", "k3"}, []string{"/orders/{id} unknown, outcome-unknown"}},
		{"whose handler turned it away", required, "POST", "/orders/7?end=429", []string{"Idempotency-Key", "k4"}, []string{"/orders/{id} released"}},
		{"whose handler panics", required, "POST", "/orders/7?end=panic", []string{"Idempotency-Key", "k5"}, []string{"/orders/{id} unknown"}},
		{"without a key that it could have had", optional, "POST", "/notes", nil, []string{"/notes unprotected"}},
		{"of gRPC", required, "POST", "/orders/7", []string{"Content-Type", "application/grpc"}, []string{"/orders/{id} unprotected"}},
		{"of a method that needs no key", required, "GET", "/orders/7", nil, nil},
	} {
		send(c.handler, c.method, c.target, c.header...)
		assert.Equal(t, observer.take(), c.want, "a request %s", c.name)
	}
	store.set(func(s *faultyStore) { s.beginErr = errors.New("gone") })
	send(required, "POST", "/orders/7", "Idempotency-Key", "k6")
	assert.Equal(t, observer.take(), []string{"/orders/{id} released, store-unavailable"}, "a request when the store is gone")
	open, err := mw.Protect(http.HandlerFunc(answer), semelhttp.Route{Name: "notes on paper", Path: "/paper", FailOpen: true})
	assert.NoError(t, err)
	send(open, "POST", "/paper", "Idempotency-Key", "k6")
	assert.Equal(t, observer.take(), []string{"/paper unprotected, store-unavailable"}, "a request that runs when the store is gone")
	send(open, "POST", "/paper?end=panic", "Idempotency-Key", "k6")
	assert.Equal(t, observer.take(), []string{"/paper unprotected, store-unavailable"}, "one that panics then")
}
