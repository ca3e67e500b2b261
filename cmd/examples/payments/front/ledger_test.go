package front_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func (rg *rig) ledger(t *testing.T) payments.Ledger {
	t.Helper()
	status, body := rg.send(t, http.MethodGet, "/demo/ledger", "")
	assert.Equal(t, status, http.StatusOK)
	var l payments.Ledger
	assert.NoError(t, json.Unmarshal([]byte(body), &l))
	return l
}

func TestOrdersAreDistinctIntents(t *testing.T) {
	t.Parallel()
	type request struct {
		door   payments.Door
		body   string
		header []string
	}
	key := func(k string) []string { return []string{payments.HeaderKey, k} }
	for name, c := range map[string]struct {
		requests []request
		want     int64
	}{
		"a key sent again is one order":             {[]request{{payments.Keyed, order, key("a")}, {payments.Keyed, order, key("a")}}, 1},
		"a quoted key and a bare one are one order": {[]request{{payments.Keyed, order, key(`"a"`)}, {payments.Keyed, order, key("a")}}, 1},
		"two keys are two orders":                   {[]request{{payments.Keyed, order, key("a")}, {payments.Keyed, order, key("A")}}, 2},
		"a key of two customers is two orders": {[]request{
			{payments.Keyed, order, append(key("a"), payments.HeaderCustomer, "c1")},
			{payments.Keyed, order, append(key("a"), payments.HeaderCustomer, "c2")},
		}, 2},
		"a keyed request without a key is none":              {[]request{{payments.Keyed, order, nil}}, 0},
		"nor is one whose key the naive door takes for none": {[]request{{payments.Naive, order, key("")}}, 0},
		"the naive door takes any key":                       {[]request{{payments.Naive, order, key("a b")}, {payments.Naive, order, key(strings.Repeat("k", 257))}}, 2},
		"but none that is longer than it keeps":              {[]request{{payments.Naive, order, key(strings.Repeat("k", 258))}}, 0},
		"a keyed request of two customers is none":           {[]request{{payments.Keyed, order, append(key("a"), payments.HeaderCustomer, "c1", payments.HeaderCustomer, "c2")}}, 0},
		"nor is one of a customer with an over-long name":    {[]request{{payments.Keyed, order, append(key("a"), payments.HeaderCustomer, strings.Repeat("c", 200))}}, 0},
		"where nobody asks who they are they are one": {[]request{
			{payments.Keyless, order, append(key("a"), payments.HeaderCustomer, strings.Repeat("c", 200))},
		}, 1},
		"nor is one with a bad key":      {[]request{{payments.Keyed, order, key("a b")}, {payments.Keyed, order, key("")}}, 0},
		"the naive door goes by its key": {[]request{{payments.Naive, order, key("a")}, {payments.Naive, order, key("a")}}, 1},
		"without key or order id each request is one": {[]request{
			{payments.Keyless, order, nil}, {payments.Keyless, order, nil},
		}, 2},
		"an order id sent again is one order": {[]request{
			{payments.Keyless, order, []string{payments.HeaderOrder, "o1"}}, {payments.Keyless, order, []string{payments.HeaderOrder, "o1"}},
		}, 1},
		"an order id with two keys is one order": {[]request{
			{payments.Keyed, order, append(key("a"), payments.HeaderOrder, "o1")},
			{payments.Keyed, order, append(key("b"), payments.HeaderOrder, "o1")},
		}, 1},
		"so is a key that nobody looks at": {[]request{
			{payments.Keyless, order, key("a")}, {payments.Keyless, order, key("a")},
		}, 1},
		"a bad order is none":         {[]request{{payments.Keyless, `{"amount":0}`, nil}}, 0},
		"nor is one that is declined": {[]request{{payments.Keyless, strings.Replace(order, "r_123", payments.RecipientDeclined, 1), nil}}, 0},
		"nor one the bank fails on":   {[]request{{payments.Keyless, strings.Replace(order, "r_123", payments.RecipientBankError, 1), nil}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rg := newRig(t)
			for _, r := range c.requests {
				rg.send(t, http.MethodPost, r.door.Path(), r.body, r.header...)
			}
			var got int64
			for _, account := range rg.ledger(t) {
				got += account.Orders
			}
			assert.Equal(t, got, c.want)
		})
	}
}

func TestAPaymentWhoseHeadersEndAtTheFrontIsRefused(t *testing.T) {
	t.Parallel()
	for _, header := range [][]string{
		{"Connection", "Upgrade", "Upgrade", "websocket"},
		{"Upgrade", "websocket"},
		{"Connection", "Idempotency-Key"},
		{"Connection", "Content-Type"},
		{"Connection", "close, x-customer-id"},
		{"Connection", "close", "Connection", "X-Customer-Id"},
	} {
		for _, door := range payments.Doors() {
			rg := newRig(t)
			header := append([]string{payments.HeaderKey, "a", payments.HeaderCustomer, "c1"}, header...)
			status, body := rg.send(t, http.MethodPost, door.Path(), order, header...)
			assert.Equal(t, status, http.StatusBadRequest, "%v", header)
			assert.Contains(t, body, "connection-invalid", "%v", header)
			assert.Equal(t, rg.ledger(t)[door].Orders, int64(0), "orders of %v", header)
		}
	}
	rg := newRig(t)
	status, _ := rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a", "Connection", "Keep-Alive, TE, close")
	assert.Equal(t, status, http.StatusCreated)
}

func TestTheLedgerHasItsExactShapeAndSurvivesARestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "orders.db")
	newRigOn(t, file).send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a")
	_, got := newRigOn(t, file).send(t, http.MethodGet, "/demo/ledger", "")
	assert.Equal(t, strings.TrimSpace(got), `{"keyed":{"orders":1,"payments":7,"charges":8,"charged":6,"taken":9},`+
		`"keyless":{"orders":0,"payments":0,"charges":0,"charged":0,"taken":0},"naive":{"orders":0,"payments":0,"charges":0,"charged":0,"taken":0}}`)
}

func TestTheMoneyOfOneOrderIsAskedForByItsNumbers(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	pay := func(door payments.Door, name, customer string) {
		rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderKey, rand.Text(), payments.HeaderOrder, name, payments.HeaderCustomer, customer)
	}
	pay(payments.Keyed, "o1", payments.Anonymous)
	pay(payments.Keyed, "o1", payments.Crowd)
	pay(payments.Keyless, "o2", payments.Anonymous)
	pay(payments.Keyless, "o1", payments.Anonymous)
	for name, want := range map[string]struct {
		money   string
		numbers []string
	}{
		"o1": {`{"charges":176,"taken":198}`, []string{"1", "4"}}, // what the bank here says to each question
		"o2": {`{"charges":88,"taken":99}`, []string{"3"}},
		"o3": {`{"charges":0,"taken":0}`, nil},
	} {
		before, _ := rg.requests()
		status, got := rg.send(t, http.MethodGet, "/demo/orders/"+name, "")
		assert.Equal(t, status, http.StatusOK)
		assert.Equal(t, strings.TrimSpace(got), want.money, name)
		after, _ := rg.requests()
		var numbers []string
		for _, asked := range after[len(before):] {
			numbers = append(numbers, asked.URL.Query().Get("order"))
		}
		assert.Equal(t, numbers, want.numbers, name)
	}
}

func TestTheCrowdsMoneyIsInALedgerOfItsOwn(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for _, customer := range []string{"ann", payments.Crowd, payments.Crowd} {
		rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, rand.Text(), payments.HeaderCustomer, customer)
	}
	assert.Equal(t, rg.ledger(t)[payments.Keyed], payments.Account{Orders: 1, Payments: 7, Charges: 8, Charged: 6, Taken: 9})
	_, got := rg.send(t, http.MethodGet, "/demo/crowd/ledger", "")
	assert.Equal(t, strings.TrimSpace(got), `{"keyed":{"orders":2,"payments":70,"charges":80,"charged":60,"taken":90},`+
		`"keyless":{"orders":0,"payments":0,"charges":0,"charged":0,"taken":0},"naive":{"orders":0,"payments":0,"charges":0,"charged":0,"taken":0}}`)
}

// TestEachChargeIsHeldAgainstItsOrder is what keeps one order charged twice and
// one that was not charged from looking right together.
func TestEachChargeIsHeldAgainstItsOrder(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for _, key := range []string{"a", "b", "a", "b"} {
		rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, key, payments.InternalOrder, "99")
	}
	rg.send(t, http.MethodPost, "/payments", `{"amount":0}`, payments.HeaderKey, "c")
	got, _ := rg.requests()
	var numbers []string
	for _, r := range got {
		numbers = append(numbers, r.Header.Get(payments.InternalOrder))
	}
	assert.Equal(t, numbers, []string{"1", "2", "1", "2", ""})
}

func TestAnOrderIsCountedEvenIfItsRequestIsLost(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.arm(t, `{"fault":"request-lost"}`)
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a")
	assert.Equal(t, rg.ledger(t)[payments.Keyed].Orders, int64(1))
}
