package semelhttp_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

// The smallest program that protects a handler.
func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	customer := func(r *http.Request) (string, error) { return r.Header.Get("X-Customer-Id"), nil }
	once, err := semelhttp.New(guard, customer, semelhttp.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}

	orders := 0
	create := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	})
	h, err := once.Protect(create, semelhttp.Route{Name: "create-order", Path: "/orders"})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", h)
	mux.Handle(semelhttp.WellKnownPath, once.WellKnown())

	srv := httptest.NewServer(mux)
	defer srv.Close()
	for range 2 { // the client got no answer, or the user clicked twice
		fmt.Println(order(srv.URL+"/orders", "d6a1f0c2"))
	}
	// Output:
	// 201 order 1 (replayed: "")
	// 201 order 1 (replayed: "true")
}

func order(url, key string) string {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"sku":"A"}`)) //nolint:noctx // an example.
	if err != nil {
		return err.Error()
	}
	req.Header.Set("X-Customer-Id", "c1")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s (replayed: %q)", resp.StatusCode, body, resp.Header.Get("Idempotent-Replayed"))
}

// A service whose callers share one scope: the key is bound to the credential
// that it was first used with, and nobody else sees the reply.
func ExampleAuthorizationHMAC() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	credential, err := semelhttp.AuthorizationHMAC([]byte("32 random bytes, from the config"))
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	all := func(*http.Request) (string, error) { return "all", nil }
	once, err := semelhttp.New(guard, all, semelhttp.Config{Credential: credential, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	greet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello ", r.Header.Get("Authorization"))
	})
	h, err := once.Protect(greet, semelhttp.Route{Name: "greet"})
	if err != nil {
		panic(err) //nolint:forbidigo // an example.
	}
	for _, token := range []string{"Bearer ann", "Bearer ann", "Bearer bob"} {
		r := httptest.NewRequest(http.MethodPost, "/greet", nil)
		r.Header.Set("Idempotency-Key", "k1")
		r.Header.Set("Authorization", token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Semel-Outcome"))
	}
	// Output:
	// 200 executed
	// 200 replayed
	// 403 key-reused
}
