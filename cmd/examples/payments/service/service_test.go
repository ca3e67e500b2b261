package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/bank"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

const order = `{"amount":2500,"currency":"USD","recipientId":"r_123"}`

// rig is a service with its bank, both in this process.
type rig struct {
	service http.Handler
	bank    http.Handler
	logged  *bytes.Buffer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigIn(t, service.Place{Business: open(t, filepath.Join(t.TempDir(), "service.db"))}, "")
}

// newRigIn returns a service of a demo in a place, with a bank of its own.
func newRigIn(t *testing.T, place service.Place, demo string) *rig {
	t.Helper()
	b, err := bank.New(t.Context(), open(t, filepath.Join(t.TempDir(), "bank.db")).Write, bank.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	rg := &rig{bank: b.Handler(), logged: &bytes.Buffer{}}
	s, err := service.New(t.Context(), place, service.Config{
		Bank:   server.Listener.Addr().String(),
		Demo:   demo,
		Logger: slog.New(payments.NumberedLines{Handler: slog.NewJSONHandler(rg.logged, &slog.HandlerOptions{Level: slog.LevelDebug})}),
	})
	assert.NoError(t, err)
	rg.service = s.Handler()
	return rg
}

func open(t *testing.T, file string) *sqlstore.Handles {
	t.Helper()
	h, err := sqlstore.OpenSQLite("sqlite", file)
	assert.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// ask sends one request; header names and values alternate.
func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (rg *rig) pay(door payments.Door, key, body string, header ...string) *httptest.ResponseRecorder {
	if key != "" {
		header = append(header, payments.HeaderKey, key)
	}
	return ask(rg.service, http.MethodPost, door.Path(), body, header...)
}

// account is what service and bank know of a door, without the crowd.
func (rg *rig) account(t *testing.T, door payments.Door) payments.Account {
	t.Helper()
	return rg.named(t, door.AccountOf(payments.Anonymous))
}

// named is what service and bank know of an account.
func (rg *rig) named(t *testing.T, name payments.AccountName) payments.Account {
	t.Helper()
	account := totals(t, rg.bank)[name]
	account.Payments = totals(t, rg.service)[name].Payments
	return account
}

// bankAccount is what the bank knows of a door.
func (rg *rig) bankAccount(t *testing.T, door payments.Door) payments.Account {
	t.Helper()
	return totals(t, rg.bank)[door.AccountOf(payments.Anonymous)]
}

// totals are what a process has counted.
func totals(t *testing.T, process http.Handler) (counted payments.Totals) {
	t.Helper()
	assert.NoError(t, json.Unmarshal(ask(process, http.MethodGet, "/totals", "").Body.Bytes(), &counted))
	return counted
}

var once = payments.Account{Payments: 1, Charges: 1, Taken: 2500}

func TestAPaymentIsStoredAndChargedUnderTheOperationID(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	w := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, w.Code, http.StatusCreated)
	var p service.Payment
	assert.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	assert.Equal(t, p.ChargeID, p.ID)
	assert.Equal(t, w.Header().Get("Location"), "/payments/"+p.ID)
	assert.Equal(t, ask(rg.service, http.MethodGet, "/payments/"+p.ID, "").Body.String(), w.Body.String(), "the stored payment")
	assert.Equal(t, ask(rg.service, http.MethodGet, "/payments/other", "").Code, http.StatusNotFound)
	assert.Equal(t, rg.account(t, payments.Keyed), once)
}

func TestARepeatIsAnsweredWithTheSameBytesAndPaysNothing(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	first := rg.pay(payments.Keyed, `"k1"`, order)
	again := rg.pay(payments.Keyed, "k1", ` {"recipientId":"r_123", "currency":"USD", "amount":2500}`)
	assert.Equal(t, again.Code, first.Code)
	assert.Equal(t, again.Body.String(), first.Body.String())
	assert.Equal(t, again.Header().Get("Location"), first.Header().Get("Location"))
	assert.Equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	assert.Equal(t, rg.account(t, payments.Keyed), once)
}

func TestWhatTheCrowdPaysIsCountedApart(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for _, door := range payments.Doors() {
		assert.Equal(t, rg.pay(door, "k1", order, payments.HeaderCustomer, payments.Crowd).Code, http.StatusCreated)
		assert.Equal(t, rg.account(t, door), payments.Account{}, "the account of everybody else at %s", door)
		assert.Equal(t, rg.named(t, door.AccountOf(payments.Crowd)), once)
		rg.pay(door, "k2", order, payments.HeaderCustomer, "c1")
		assert.Equal(t, rg.account(t, door), once)
	}
}

func TestAKeyBelongsToItsCustomer(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	one := rg.pay(payments.Keyed, "k1", order, payments.HeaderCustomer, "c1")
	two := rg.pay(payments.Keyed, "k1", order, payments.HeaderCustomer, "c2")
	nobody := rg.pay(payments.Keyed, "k1", order)
	for _, w := range []*httptest.ResponseRecorder{one, two, nobody} {
		assert.Equal(t, w.Code, http.StatusCreated)
		assert.Equal(t, w.Header().Get("Idempotent-Replayed"), "")
	}
	named := rg.pay(payments.Keyed, "k1", order, payments.HeaderCustomer, payments.Anonymous)
	assert.Equal(t, named.Body.String(), nobody.Body.String(), "the customer called anonymous")
	assert.Equal(t, rg.account(t, payments.Keyed).Charges, int64(3))
}

func TestACustomerThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for name, header := range map[string][]string{
		"twice":    {payments.HeaderCustomer, "c1", payments.HeaderCustomer, "c2"},
		"too long": {payments.HeaderCustomer, strings.Repeat("c", 129)},
	} {
		w := rg.pay(payments.Keyed, "k1", order, header...)
		assert.Equal(t, w.Code, http.StatusForbidden, "%s", name)
		assert.Contains(t, w.Body.String(), "scope-missing", "%s", name)
	}
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{})
}

func TestAPaymentThatCannotBeUnderstoodLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	w := rg.pay(payments.Keyed, "k1", `{"amount":0,"currency":"USD","recipientId":"r_123"}`)
	assert.Equal(t, w.Code, http.StatusBadRequest)
	assert.Contains(t, w.Body.String(), `"field":"amount"`)
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{})
	assert.Equal(t, rg.pay(payments.Keyed, "k1", order).Code, http.StatusCreated, "the corrected payment")
}

func TestWhatSemelRefusesIsRefusedInItsOwnWords(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for name, c := range map[string]struct {
		key, body string
		status    int
		code      string
	}{
		"no key, also with a bad body": {"", `{}`, http.StatusBadRequest, "key-missing"},
		"a bad key":                    {"a b", order, http.StatusBadRequest, "key-invalid"},
		"a body over the limit":        {"k1", strings.Repeat(" ", payments.MaxBody+1), http.StatusRequestEntityTooLarge, "body-too-large"},
	} {
		w := rg.pay(payments.Keyed, c.key, c.body)
		assert.Equal(t, w.Code, c.status, "%s", name)
		assert.Contains(t, w.Body.String(), "docs/problems.md#"+c.code, "%s", name)
	}
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{})
}

func TestADeclineIsKept(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	body := strings.Replace(order, "r_123", payments.RecipientDeclined, 1)
	first := rg.pay(payments.Keyed, "k1", body)
	assert.Equal(t, first.Code, http.StatusPaymentRequired)
	assert.Equal(t, first.Header().Get("Content-Type"), "application/problem+json")
	again := rg.pay(payments.Keyed, "k1", body)
	assert.Equal(t, again.Body.String(), first.Body.String())
	assert.Equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{})
}

func TestABankErrorIsNotKeptAndTheRepeatAsksUnderTheSameID(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	first := rg.pay(payments.Keyed, "k1", order, payments.InternalFault, string(payments.BankError))
	assert.Equal(t, first.Code, http.StatusBadGateway)
	assert.Equal(t, first.Header().Get("Semel-Outcome"), "unknown")
	assert.Equal(t, rg.account(t, payments.Keyed), payments.Account{})
	again := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, again.Code, http.StatusCreated)
	var p service.Payment
	assert.NoError(t, json.Unmarshal(again.Body.Bytes(), &p))
	var c bank.Charge
	assert.NoError(t, json.Unmarshal(ask(rg.bank, http.MethodGet, "/charges/"+p.ID, "").Body.Bytes(), &c))
	assert.Equal(t, c.Asked, int64(2), "requests that the bank has seen under the payment's id")
	assert.Equal(t, rg.account(t, payments.Keyed), once)
}

func TestWithoutAKeyEveryRequestPays(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	first := rg.pay(payments.Keyless, "k1", order)
	again := rg.pay(payments.Keyless, "k1", order)
	assert.Equal(t, again.Code, http.StatusCreated)
	assert.True(t, first.Body.String() != again.Body.String(), "two payments differ")
	assert.Equal(t, rg.account(t, payments.Keyless), payments.Account{Payments: 2, Charges: 2, Taken: 5000})
	assert.Equal(t, rg.pay(payments.Keyless, "", `{}`).Code, http.StatusBadRequest)
}

func TestTheNaiveDoorReplaysWhatItHasSaved(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	first := rg.pay(payments.Naive, "k1", order)
	again := rg.pay(payments.Naive, "k1", order)
	assert.Equal(t, again.Body.String(), first.Body.String())
	assert.Equal(t, again.Header().Get("Location"), first.Header().Get("Location"))
	assert.Equal(t, rg.account(t, payments.Naive), once)
	assert.Equal(t, rg.pay(payments.Naive, "", order).Code, http.StatusBadRequest, "without a key")
	for n, want := range map[int]int{257: http.StatusCreated, 258: http.StatusBadRequest, 1 << 20: http.StatusBadRequest} {
		w := rg.pay(payments.Naive, strings.Repeat("k", n), order)
		assert.Equal(t, w.Code, want, "a key of %d bytes", n)
		if want == http.StatusBadRequest {
			assert.Contains(t, w.Body.String(), fmt.Sprintf(`"detail":"Idempotency-Key has %d bytes; the most is 257"`, n))
			assert.Contains(t, w.Body.String(), `"code":"key-too-long"`)
		}
	}
	failed := rg.pay(payments.Naive, "k2", order, payments.InternalFault, string(payments.BankError))
	assert.Equal(t, failed.Code, http.StatusBadGateway)
	assert.Equal(t, rg.pay(payments.Naive, "k2", order).Code, http.StatusCreated, "after the bank's error")
}

func TestTenAtOnceUnderOneKeyPayOnce(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 10 {
		all.Go(func() {
			<-start
			w := rg.pay(payments.Keyed, "k1", order)
			assert.True(t, w.Code == http.StatusCreated || w.Code == http.StatusConflict, "status 201 or 409, got %d", w.Code)
		})
	}
	close(start)
	all.Wait()
	assert.Equal(t, rg.account(t, payments.Keyed), once)
}

func TestAnOrderWithTheClientsOwnNameNeedsNoKey(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	put := func(body string) *httptest.ResponseRecorder {
		return ask(rg.service, http.MethodPut, "/orders/o1", body)
	}
	first, again := put(`{"item":"mug"}`), put(`{"item":"mug"}`)
	for _, w := range []*httptest.ResponseRecorder{first, again} {
		assert.Equal(t, w.Code, http.StatusCreated)
		assert.Equal(t, w.Body.String(), `{"item":"mug"}`)
		assert.Equal(t, w.Header().Get("Location"), "/orders/o1")
	}
	changed, changedAgain := put(`{"item":"cup"}`), put(`{"item":"cup"}`)
	assert.Equal(t, changed.Code, http.StatusOK)
	assert.Equal(t, changedAgain.Code, http.StatusOK)
	assert.Equal(t, ask(rg.service, http.MethodGet, "/orders/o1", "").Body.String(), `{"item":"cup"}`)

	remove := func() int { return ask(rg.service, http.MethodDelete, "/orders/o1", "").Code }
	assert.Equal(t, remove(), http.StatusNoContent)
	assert.Equal(t, remove(), http.StatusNotFound)
	assert.Equal(t, ask(rg.service, http.MethodGet, "/orders/o1", "").Code, http.StatusNotFound)
}

func TestABadOrderIsRefused(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"no JSON":          {"/orders/o1", `item`, http.StatusBadRequest},
		"no object":        {"/orders/o1", `[]`, http.StatusBadRequest},
		"a doubled member": {"/orders/o1", `{"a":1,"a":2}`, http.StatusBadRequest},
		"a bad id":         {"/orders/o%201", `{}`, http.StatusBadRequest},
		"a long id":        {"/orders/" + strings.Repeat("o", 65), `{}`, http.StatusBadRequest},
		"a long body":      {"/orders/o1", `{"a":"` + strings.Repeat("a", payments.MaxBody) + `"}`, http.StatusRequestEntityTooLarge},
		"no id":            {"/orders/", `{}`, http.StatusNotFound},
	} {
		assert.Equal(t, ask(rg.service, http.MethodPut, c.path, c.body).Code, c.status, "%s", name)
	}
	assert.Equal(t, ask(rg.service, http.MethodGet, "/orders/o1", "").Code, http.StatusNotFound)
}

func TestTheRulesArePublished(t *testing.T) {
	t.Parallel()
	w := ask(newRig(t).service, http.MethodGet, "/.well-known/idempotency", "")
	assert.Equal(t, w.Code, http.StatusOK)
	var got struct {
		Endpoints []struct {
			Path, Scope, Recovery string
		}
	}
	assert.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	assert.Equal(t, len(got.Endpoints), 1)
	assert.Equal(t, got.Endpoints[0].Path, "/payments")
	assert.Equal(t, got.Endpoints[0].Scope, "customer")
	assert.Equal(t, got.Endpoints[0].Recovery, "resume:24h0m0s")
}

func TestLogLinesCarryTheRequestsNumberAndNotItsKey(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.pay(payments.Keyed, "canary-7f3a", order, payments.InternalRequest, "42")
	assert.Contains(t, rg.logged.String(), `"msg":"semel: request"`)
	for line := range strings.Lines(rg.logged.String()) {
		assert.Contains(t, line, `"request":"42"`)
		assert.True(t, !strings.Contains(line, "canary"), "no key in %s", line)
	}
}

func TestAServiceWithoutABankIsRefused(t *testing.T) {
	t.Parallel()
	_, err := service.New(t.Context(), service.Place{Business: open(t, filepath.Join(t.TempDir(), "service.db"))}, service.Config{})
	assert.True(t, err != nil, "an error")
}
