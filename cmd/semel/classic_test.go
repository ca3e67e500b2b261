package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// The classic tests of retry safety, against the real system.

func TestARepeatGetsTheSameReplyAndOnePaymentIsStored(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	first, again := d.payUntil(t, "k1"), d.payUntil(t, "k1")
	assert.Equal(t, first.Status, http.StatusCreated)
	assert.Equal(t, again.Status, first.Status)
	assert.Equal(t, again.Body, first.Body)
	assert.Equal(t, again.Header.Get("Location"), first.Header.Get("Location"))
	assert.Equal(t, again.Header.Get("Content-Type"), first.Header.Get("Content-Type"))
	assert.True(t, again.replayed() && !first.replayed(), "only the repeat is marked")
	id, _ := first.payment(t)
	assert.Equal(t, d.send(t, http.MethodGet, "/payments/"+id, "").Body, first.Body)
	assert.Equal(t, d.ledger(t)[payments.Keyed], once)
	assert.Equal(t, d.asked(t, id), 1)
}

func TestAKeyForAnotherPaymentIs422AndStoresNothing(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.payUntil(t, "k1")
	a := d.send(t, http.MethodPost, "/payments", strings.Replace(order, "2500", "2501", 1), payments.HeaderKey, "k1")
	assert.Equal(t, a.Status, http.StatusUnprocessableEntity)
	assert.Contains(t, a.Body, "key-reused")
	assert.Equal(t, d.ledger(t)[payments.Keyed], once)
}

func TestManyAtOnceUnderOneKeyAreOnePayment(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	for i, n := range []int{10, 64} {
		key := fmt.Sprintf("k%d", n)
		answers := make([]answer, n)
		var all sync.WaitGroup
		start := make(chan struct{})
		for j := range answers {
			all.Go(func() {
				<-start
				answers[j] = d.pay(t, key)
			})
		}
		close(start)
		all.Wait()
		executed := 0
		paid := d.payUntil(t, key)
		for _, a := range answers {
			switch a.Status {
			case http.StatusCreated:
				assert.Equal(t, a.Body, paid.Body)
				if !a.replayed() {
					executed++
				}
			case http.StatusConflict:
				assert.Contains(t, a.Body, "in-progress")
				assert.True(t, a.Header.Get("Retry-After") != "", "a Retry-After on 409")
			default:
				t.Errorf("got %d %s, want 201 or 409", a.Status, a.Body)
			}
		}
		assert.Equal(t, executed, 1, "executions of %d requests", n)
		id, charge := paid.payment(t)
		assert.Equal(t, charge, id)
		assert.Equal(t, d.asked(t, id), 1, "charges asked for by %d requests", n)
		sofar := int64(i + 1)
		assert.Equal(t, d.ledger(t)[payments.Keyed],
			payments.Account{Orders: sofar, Payments: sofar, Charges: sofar, Charged: sofar, Taken: sofar * 2500})
	}
}

func TestAfterABankErrorTheSameKeyWorksAndTheBankSeesTheSameID(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.arm(t, payments.BankError)
	failed := d.pay(t, "k1")
	assert.Equal(t, failed.Status, http.StatusBadGateway)
	assert.Equal(t, d.ledger(t)[payments.Keyed], payments.Account{Orders: 1})
	paid := d.pay(t, "k1")
	assert.Equal(t, paid.Status, http.StatusCreated)
	assert.True(t, !paid.replayed(), "the 502 was not kept")
	id, charge := paid.payment(t)
	assert.Equal(t, charge, id)
	assert.Equal(t, d.asked(t, id), 2, "requests that the bank has seen under the id")
	assert.Equal(t, d.ledger(t)[payments.Keyed], once)
}

func TestARetryAfterAKillFindsTheFirstCharge(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	before := d.pid(t, "service")
	d.arm(t, payments.KilledAfterCharge)
	assert.Equal(t, d.pay(t, "k1").Status, 0, "status of the killed request")
	taken := d.ledger(t)[payments.Keyed]
	assert.Equal(t, taken, payments.Account{Orders: 1, Charges: 1, Charged: 1, Taken: 2500}, "charged and not stored")
	id, charge := d.payUntil(t, "k1").payment(t)
	assert.Equal(t, charge, id)
	assert.Equal(t, d.asked(t, id), 2)
	assert.Equal(t, d.ledger(t)[payments.Keyed], once)
	assert.Eventually(t, "another service in place of the killed one", func() bool {
		return d.pid(t, "service") != before && !alive(before)
	})
}

func TestOneOrderChargedTwiceAndOneNotChargedIsNotRight(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	pay := func(door payments.Door, name string) {
		d.send(t, http.MethodPost, door.Path(), order, payments.HeaderOrder, name, payments.HeaderKey, name)
	}
	for _, door := range payments.Doors() {
		d.arm(t, payments.ReplyLost)
		pay(door, "one")
		pay(door, "one")
		d.arm(t, payments.RequestLost)
		pay(door, "two")
	}
	ledger := d.ledger(t)
	assert.Equal(t, ledger[payments.Keyless], payments.Account{Orders: 2, Payments: 2, Charges: 2, Charged: 1, Taken: 5000})
	assert.Equal(t, ledger[payments.Keyless].TooMany(), int64(1))
	assert.Equal(t, ledger[payments.Keyless].NotCharged(), int64(1))
	for _, door := range []payments.Door{payments.Keyed, payments.Naive} {
		assert.Equal(t, ledger[door], payments.Account{Orders: 2, Payments: 1, Charges: 1, Charged: 1, Taken: 2500}, "%s", door)
	}
	assert.Contains(t, d.send(t, http.MethodGet, "/", "").Body, "1 charge too many, 1 order not charged so far.")
}

func TestMalformedRequestsRunNothing(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
		want   string
	}{
		"no key":            {order, nil, http.StatusBadRequest, "key-missing"},
		"an empty key":      {order, []string{payments.HeaderKey, ""}, http.StatusBadRequest, "key-invalid"},
		"an open quote":     {order, []string{payments.HeaderKey, `"k1`}, http.StatusBadRequest, "key-invalid"},
		"a list of keys":    {order, []string{payments.HeaderKey, `k1,k2`}, http.StatusBadRequest, "key-invalid"},
		"two keys":          {order, []string{payments.HeaderKey, "k1", payments.HeaderKey, "k2"}, http.StatusBadRequest, "key-invalid"},
		"an over-long key":  {order, []string{payments.HeaderKey, strings.Repeat("k", 256)}, http.StatusBadRequest, "key-invalid"},
		"a body not JSON":   {`{`, []string{payments.HeaderKey, "k1"}, http.StatusBadRequest, "payment-invalid"},
		"a bad amount":      {strings.Replace(order, "2500", "25.00", 1), []string{payments.HeaderKey, "k1"}, http.StatusBadRequest, `"field":"amount"`},
		"an unknown member": {`{"tip":1}`, []string{payments.HeaderKey, "k1"}, http.StatusBadRequest, `"field":"tip"`},
		"a huge body":       {strings.Repeat(" ", 5<<20), []string{payments.HeaderKey, "k1"}, http.StatusRequestEntityTooLarge, "body-too-large"},
	} {
		a := d.send(t, http.MethodPost, "/payments", c.body, c.header...)
		assert.Equal(t, a.Status, c.status, "%s", name)
		assert.Contains(t, a.Body, c.want, "%s", name)
		assert.Equal(t, a.Header.Get("Content-Type"), "application/problem+json", "%s", name)
	}
	assert.Equal(t, d.ledger(t)[payments.Keyed], payments.Account{})
	d.payUntil(t, "k1") // the key is still free
}
