package bank_test

import (
	"encoding/json"
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
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

const order = `{"amount":2500,"currency":"USD","recipientId":"r_123"}`

// open returns the bank whose money is in file.
func open(t *testing.T, file string) http.Handler {
	t.Helper()
	h, err := sqlstore.OpenSQLite("sqlite", file)
	assert.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	b, err := bank.New(t.Context(), h.Write, bank.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	return b.Handler()
}

func newBank(t *testing.T) http.Handler {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "bank.db"))
}

// ask sends one request; header names and values alternate.
func ask(b http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func chargeWith(b http.Handler, key, body string) *httptest.ResponseRecorder {
	return ask(b, http.MethodPost, "/charges", body, payments.HeaderKey, key, payments.InternalAccount, "keyed", payments.InternalOrder, "1")
}

func totals(t *testing.T, b http.Handler) payments.Account {
	t.Helper()
	var l payments.Totals
	assert.NoError(t, json.Unmarshal(ask(b, http.MethodGet, "/totals", "").Body.Bytes(), &l))
	return l[payments.Keyed.AccountOf(payments.Anonymous)]
}

func asked(t *testing.T, b http.Handler, id string) int64 {
	t.Helper()
	var c bank.Charge
	assert.NoError(t, json.Unmarshal(ask(b, http.MethodGet, "/charges/"+id, "").Body.Bytes(), &c))
	return c.Asked
}

func TestChargesWithOneKeyAreOneCharge(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	for range 3 {
		w := chargeWith(b, "k1", order)
		assert.Equal(t, w.Code, http.StatusCreated)
		assert.Contains(t, w.Body.String(), `"id":"k1"`)
	}
	assert.Equal(t, totals(t, b), payments.Account{Charges: 1, Charged: 1, Taken: 2500})
	assert.Equal(t, asked(t, b, "k1"), int64(3))
}

func TestSixtyFourChargesAtOnceWithOneKeyTakeTheMoneyOnce(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 64 {
		all.Go(func() {
			<-start
			assert.Equal(t, chargeWith(b, "k1", order).Code, http.StatusCreated)
		})
	}
	close(start)
	all.Wait()
	assert.Equal(t, totals(t, b), payments.Account{Charges: 1, Charged: 1, Taken: 2500})
}

func TestTheBankRemembersOverARestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	assert.Equal(t, chargeWith(open(t, file), "k1", order).Code, http.StatusCreated)
	again := open(t, file)
	assert.Equal(t, chargeWith(again, "k1", order).Code, http.StatusCreated)
	assert.Equal(t, totals(t, again), payments.Account{Charges: 1, Charged: 1, Taken: 2500})
}

func TestChargesWithoutAKeyAreAlwaysNew(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	for range 2 {
		w := ask(b, http.MethodPost, "/charges", order, payments.InternalAccount, "keyed", payments.InternalOrder, "1")
		assert.Equal(t, w.Code, http.StatusCreated)
	}
	assert.Equal(t, totals(t, b), payments.Account{Charges: 2, Charged: 1, Taken: 5000})
}

func TestTheTotalsOfOneOrderAreItsOwn(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	for _, noted := range []string{"1", "1", "2", ""} {
		w := ask(b, http.MethodPost, "/charges", order, payments.InternalAccount, "keyed", payments.InternalOrder, noted)
		assert.Equal(t, w.Code, http.StatusCreated)
	}
	for noted, want := range map[string]string{
		"1": `{"keyed":{"orders":0,"payments":0,"charges":2,"charged":1,"taken":5000}}`,
		"2": `{"keyed":{"orders":0,"payments":0,"charges":1,"charged":1,"taken":2500}}`,
		"3": `{}`,
	} {
		got := ask(b, http.MethodGet, "/totals?order="+noted, "")
		assert.Equal(t, strings.TrimSpace(got.Body.String()), want, noted)
	}
}

func TestABankThatForgetsKeysChargesAgain(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	w := ask(b, http.MethodPut, "/dedupe", `{"dedupe":false}`)
	assert.Equal(t, w.Code, http.StatusOK)
	chargeWith(b, "k1", order)
	chargeWith(b, "k1", order)
	assert.Equal(t, totals(t, b).Charges, int64(2))

	assert.Equal(t, ask(b, http.MethodPut, "/dedupe", `{"dedupe":true}`).Code, http.StatusOK)
	chargeWith(b, "k2", order)
	chargeWith(b, "k2", order)
	assert.Equal(t, totals(t, b).Charges, int64(3), "once it looks at keys again")

	for _, bad := range []string{``, `{}`, `{"dedupe":null}`, `{"dedupe":"no"}`, `{"dedupe":true,"x":1}`} {
		assert.Equal(t, ask(b, http.MethodPut, "/dedupe", bad).Code, http.StatusBadRequest, "%s", bad)
	}
}

func TestAKeyOfAnotherChargeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	chargeWith(b, "k1", order)
	w := chargeWith(b, "k1", strings.Replace(order, "2500", "2501", 1))
	assert.Equal(t, w.Code, http.StatusUnprocessableEntity)
	assert.Equal(t, totals(t, b), payments.Account{Charges: 1, Charged: 1, Taken: 2500})
}

func TestWhatFailsTakesNothingAndIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recipient string
		fault     payments.Fault
		status    int
	}{
		"a declined recipient":        {payments.RecipientDeclined, payments.NoFault, http.StatusPaymentRequired},
		"a recipient that fails":      {payments.RecipientBankError, payments.NoFault, http.StatusInternalServerError},
		"a bank that is out of order": {"r_123", payments.BankError, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			body := strings.Replace(order, "r_123", c.recipient, 1)
			w := ask(b, http.MethodPost, "/charges", body, payments.HeaderKey, "k1", payments.InternalFault, string(c.fault))
			assert.Equal(t, w.Code, c.status)
			assert.Equal(t, totals(t, b), payments.Account{})
			assert.Equal(t, ask(b, http.MethodGet, "/charges/k1", "").Code, http.StatusNotFound)
			chargeWith(b, "k1", order)
			assert.Equal(t, asked(t, b, "k1"), int64(2), "requests under the key, the failed one included")
		})
	}
}

func TestTheBankRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	assert.Equal(t, chargeWith(b, "k1", `{"amount":"much"}`).Code, http.StatusBadRequest)
	assert.Equal(t, chargeWith(b, "k1", strings.Repeat(" ", payments.MaxBody+1)).Code, http.StatusRequestEntityTooLarge)
	assert.Equal(t, ask(b, http.MethodGet, "/nowhere", "").Code, http.StatusNotFound)
	assert.Equal(t, totals(t, b), payments.Account{})
}
