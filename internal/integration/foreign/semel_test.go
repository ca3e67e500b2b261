//go:build !race

package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

// serveWithSemel serves the same payment with Semel before it, keys in memory as
// well, and returns its address.
func serveWithSemel(t *testing.T) string {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	assert.NoError(t, err)
	caller := func(r *http.Request) (string, error) { return cmp.Or(r.Header.Get(tenantHeader), "anybody"), nil }
	once, err := semelhttp.New(guard, caller, semelhttp.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	var b bank
	payments, err := once.Protect(http.HandlerFunc(b.pay), semelhttp.Route{Name: "payments", Path: "/payments"})
	assert.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /payments", payments)
	mux.Handle(semelhttp.WellKnownPath, once.WellKnown())
	mux.HandleFunc("GET /ledger", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"charges":%d}`, b.charges.Load())
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// pay is what the shops of Fiber do.
func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Amount int `json:"amount"`
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Amount <= 0 {
		http.Error(w, "no amount", http.StatusBadRequest)
		return
	}
	b.charges.Add(1)
	<-time.After(workTime)
	if order.Amount == 500 {
		http.Error(w, "charged, and then the disk was full", http.StatusInternalServerError)
		return
	}
	id := uuid.NewString()
	w.Header().Set("Location", "/payments/"+id)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q,"amount":%d}`, id, order.Amount)
}
