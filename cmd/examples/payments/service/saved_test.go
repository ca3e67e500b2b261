package service_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/bank"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/internal/assert"
)

// noticing calls a function for each line of a log with its message.
type noticing struct {
	slog.Handler

	calls map[string]func()
}

// Enabled implements slog.Handler.
func (noticing) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (n noticing) Handle(_ context.Context, r slog.Record) error {
	if call := n.calls[r.Message]; call != nil {
		call()
	}
	return nil
}

// Somebody has the database for longer than a write waits, as a process does that
// is frozen in the middle of one: the work cannot be saved, and its end can.
func TestAPaymentThatWasChargedAndCannotBeSavedSaysSo(t *testing.T) {
	t.Parallel()
	handles := open(t, filepath.Join(t.TempDir(), "service.db"))
	b, err := bank.New(t.Context(), open(t, filepath.Join(t.TempDir(), "bank.db")).Write, bank.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	var writer *sql.Conn
	var once sync.Once
	calls := map[string]func(){
		payments.LineBankAnswered: func() {
			once.Do(func() {
				var err error
				writer, err = handles.Write.Conn(context.WithoutCancel(t.Context()))
				assert.NoError(t, err)
			})
		},
		payments.LineNotSaved: func() { assert.NoError(t, writer.Close()) },
	}
	s, err := service.New(t.Context(), service.Place{Business: handles}, service.Config{
		Bank: server.Listener.Addr().String(), Logger: slog.New(noticing{slog.DiscardHandler, calls}),
	})
	assert.NoError(t, err)
	rg := &rig{service: s.Handler(), bank: b.Handler()}
	lease := fmt.Sprintf(`{"lease":"%v"}`, payments.MaxLease) // it does not end here
	assert.Equal(t, ask(rg.service, http.MethodPut, "/lease", lease).Code, http.StatusOK)

	w := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, w.Code, http.StatusServiceUnavailable, "%s", w.Body)
	assert.Equal(t, w.Header().Get("Semel-Outcome"), "unknown")
	assert.True(t, w.Header().Get("Retry-After") != "", "Retry-After")
	var p payments.Problem
	assert.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	assert.Equal(t, p.Code, "payment-unsaved")
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{Charges: 1, Taken: 2500})

	assert.Eventually(t, "the same key is paid", func() bool { return rg.pay(payments.Keyed, "k1", order).Code == http.StatusCreated })
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{Payments: 1, Charges: 1, Taken: 2500})
}
