package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
	"github.com/semel-dev/semel/internal/assert"
)

// serve returns a way to a demo that answers so, and how often it was asked.
func serve(t *testing.T, answer http.HandlerFunc) (*client.Client, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return client.New(server.URL + "/"), &asked
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestAPaymentIsSentAsItIsMeantAndItsAnswerIsTold(t *testing.T) {
	t.Parallel()
	var got *http.Request
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Semel-Outcome", "replayed")
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusConflict)
		w.Write([]byte("told"))
	})
	answer, err := c.Pay(t.Context(), client.Payment{
		Door: payments.Naive, Customer: "c_1", Order: "o_1", Key: "k_1", Fault: payments.NoFaultName, Body: []byte(`{}`),
	})
	assert.NoError(t, err)
	assert.Equal(t, answer, client.Answer{
		Status: http.StatusConflict, Outcome: "replayed", Replayed: true, RetryAfter: 3 * time.Second, Body: []byte("told"),
	})
	assert.Equal(t, got.URL.Path, "/naive/payments")
	for name, want := range map[string]string{
		payments.HeaderCustomer: "c_1", payments.HeaderOrder: "o_1", payments.HeaderKey: `"k_1"`,
		payments.HeaderFault: "none", "Content-Type": "application/json",
	} {
		assert.Equal(t, got.Header.Get(name), want, "%s", name)
	}
	_, err = c.Pay(t.Context(), client.Payment{Door: payments.Keyless})
	assert.NoError(t, err)
	for _, name := range []string{payments.HeaderCustomer, payments.HeaderOrder, payments.HeaderKey, payments.HeaderFault} {
		assert.Equal(t, got.Header.Values(name), nil, "%s of a payment that has none", name)
	}
}

func TestAPaymentWithoutAnAnswerIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, hangUp)
	for range 5 {
		_, err := c.Pay(t.Context(), client.Payment{Door: payments.Keyed, Key: "k"})
		assert.True(t, err != nil, "an error")
	}
	assert.Equal(t, asked.Load(), int64(5))
}

func TestWhatIsOnlyReadIsAskedForThreeTimesAndWhatIsSetOnce(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int64{http.MethodGet: 3, http.MethodPut: 1, http.MethodPost: 1} {
		c, asked := serve(t, hangUp)
		assert.True(t, c.Ask(t.Context(), method, "/demo/bank", nil, nil) != nil, "an error")
		assert.Equal(t, asked.Load(), want, "%s", method)
	}
}

func TestARefusalIsToldInTheDemosWords(t *testing.T) {
	t.Parallel()
	c, asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/demo/log" {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		payments.NewProblem(http.StatusConflict, "crowd-running", "a run is under way").Write(w)
	})
	err := c.Ask(t.Context(), http.MethodPost, "/demo/crowd", map[string]int{"seed": 1}, nil)
	refused, ok := errors.AsType[*client.RefusedError](err)
	assert.True(t, ok, "got %v, want a refusal", err)
	assert.Equal(t, refused.Status, http.StatusConflict)
	assert.Equal(t, err.Error(), "POST /demo/crowd was answered with 409: a run is under way")
	err = c.Ask(t.Context(), http.MethodGet, "/demo/log", nil, nil)
	assert.Equal(t, err.Error(), "GET /demo/log was answered with 500")
	assert.Equal(t, asked.Load(), int64(2), "a refusal is an answer")
}

func TestAnAnswerThatNobodyWouldReadIsAnError(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(strings.Repeat("x", 1<<20+1))) })
	_, err := c.Pay(t.Context(), client.Payment{Door: payments.Keyed, Key: "k"})
	assert.True(t, err != nil && strings.Contains(err.Error(), "over 1048576 bytes"), "got %v", err)
}

func TestEachLedgerIsReadWhereItIs(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		l := payments.Ledger{payments.Keyed: {Orders: 1}}
		if r.URL.Path == "/demo/crowd/ledger" {
			l = payments.Ledger{payments.Keyed: {Orders: 2}}
		}
		payments.WriteJSON(w, http.StatusOK, l)
	})
	for customer, want := range map[string]int64{payments.Anonymous: 1, payments.Crowd: 2} {
		l, err := c.Ledger(t.Context(), customer)
		assert.NoError(t, err)
		assert.Equal(t, l[payments.Keyed].Orders, want, "%s", customer)
	}
}
