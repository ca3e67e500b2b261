package crowd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/internal/assert"
)

// sent is a request of the crowd.
type sent struct{ door, order, key, fault, body string }

// demo stands in for the front. It takes the money of each request once, and
// answers 409 to the first request of every order.
type demo struct {
	mu     sync.Mutex
	sent   []sent
	ledger payments.Ledger
	// twice makes the door with Semel charge for every request.
	twice bool
	seen  map[string]bool
	// guest is what somebody else pays as the crowd at each door once the run has
	// begun, and lost how many orders do not show in the ledger.
	guest payments.Account
	lost  int64
	// unstored is how many payments of each door were not stored, and more how
	// much more was taken there than the orders were for.
	unstored, more int64
	// forgets makes the bank say that it does not look at its keys.
	forgets bool
}

func (d *demo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.URL.Path == "/demo/crowd/ledger" {
		payments.WriteJSON(w, http.StatusOK, d.ledger)
		return
	}
	if r.URL.Path == "/demo/bank" {
		payments.WriteJSON(w, http.StatusOK, map[string]bool{"dedupe": !d.forgets})
		return
	}
	door, _ := payments.DoorOf(r)
	var o payments.Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := string(door) + r.Header.Get(payments.HeaderOrder)
	again := d.seen[name]
	d.seen[name] = true
	d.sent = append(d.sent, sent{
		string(door), r.Header.Get(payments.HeaderOrder), r.Header.Get(payments.HeaderKey), r.Header.Get(payments.HeaderFault),
		string(payments.Marshal(o)),
	})
	a, known := d.ledger[door]
	if !known {
		a = d.guest
		a.Orders -= d.lost
		a.Payments -= d.unstored
		a.Taken += d.more
	}
	if !again {
		a.Orders++
	}
	if !again || d.twice {
		a.Payments++
		a.Charges++
		if !again {
			a.Charged++
		}
		a.Taken += o.Amount
	}
	d.ledger[door] = a
	if !again {
		w.WriteHeader(http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// newCrowd returns a running crowd before d, and its handler's answers.
func newCrowd(t *testing.T, d *demo) (c *crowd.Crowd, post func(body string) (int, string), wait func() crowd.Report) {
	t.Helper()
	d.ledger, d.seen = payments.Ledger{}, map[string]bool{}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	news := make(chan struct{}, 100_000)
	c = crowd.New(server.URL, func() { news <- struct{}{} })
	c.Wait(time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})
	post = func(body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/demo/crowd", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	wait = func() crowd.Report {
		for range news {
			if r := c.Report(); !r.Running {
				return r
			}
		}
		return crowd.Report{}
	}
	return c, post, wait
}

func TestARun(t *testing.T) {
	t.Parallel()

	t.Run("every shopper places one order at each door, and sends it until it is settled", func(t *testing.T) {
		t.Parallel()
		d := &demo{}
		_, post, wait := newCrowd(t, d)
		status, _ := post(`{"seed":3,"shoppers":5,"trouble":0}`)
		assert.Equal(t, status, http.StatusAccepted)
		r := wait()
		assert.Equal(t, r.Broken+r.Failed, "")
		assert.True(t, *r.Holds, "the run does not hold: %+v", r)
		assert.Equal(t, r.Done, 15)
		for _, p := range r.Doors {
			assert.Equal(t, p.Sends, 10, "requests at %s", p.Door)
			assert.Equal(t, *p.Ledger, payments.Account{Orders: 5, Payments: 5, Charges: 5, Charged: 5, Taken: p.Want})
			assert.Equal(t, p.Want, r.Doors[0].Want, "the orders cost the same at each door")
		}
		keys := map[string]bool{}
		for _, s := range d.sent {
			assert.Equal(t, s.fault, "none")
			assert.Equal(t, s.key == "", s.door == "keyless", "key at %s", s.door)
			keys[s.key] = true
		}
		assert.Equal(t, len(keys), 6, "keys, with none")
	})

	t.Run("the same seed draws the same prices, another seed others", func(t *testing.T) {
		t.Parallel()
		d := &demo{}
		_, post, wait := newCrowd(t, d)
		var wants []int64
		for _, seed := range []string{"3", "3", "4"} {
			post(`{"seed":` + seed + `,"shoppers":4,"trouble":0}`)
			wants = append(wants, wait().Doors[0].Want)
		}
		assert.Equal(t, wants[1], wants[0])
		assert.True(t, wants[2] != wants[0], "two seeds draw the same")
	})

	t.Run("one charge too many at the door with Semel is found", func(t *testing.T) {
		t.Parallel()
		_, post, wait := newCrowd(t, &demo{twice: true})
		post(`{"shoppers":3,"trouble":0}`)
		r := wait()
		assert.Equal(t, *r.Holds, false)
		assert.Equal(t, r.Broken, "6 charges for 3 orders, of which 3 were charged")
	})

	t.Run("new keys are other keys for each send of one order", func(t *testing.T) {
		t.Parallel()
		d := &demo{}
		_, post, wait := newCrowd(t, d)
		post(`{"shoppers":3,"trouble":0,"newKeys":true}`)
		wait()
		keys, orders := map[string]bool{}, map[string]bool{}
		for _, s := range d.sent {
			if s.door == "keyed" {
				keys[s.key], orders[s.order] = true, true
			}
		}
		assert.Equal(t, len(keys), 6, "keys")
		assert.Equal(t, len(orders), 3, "orders")
	})
}

func TestARunIsNotBlamedForOneWhoCallsThemselvesTheCrowd(t *testing.T) {
	t.Parallel()
	_, post, wait := newCrowd(t, &demo{guest: payments.Account{Orders: 1, Payments: 1, Charges: 1, Charged: 1, Taken: 2500}})
	post(`{"shoppers":3,"trouble":0}`)
	r := wait()
	assert.Equal(t, r.Failed, "somebody else paid as the customer crowd: there are 4 new orders at the door keyed, and the run placed 3")
	assert.Equal(t, r.Broken, "")
	assert.True(t, r.Holds == nil, "there is a result")
}

func TestAnOrderThatTheLedgerMissesIsFound(t *testing.T) {
	t.Parallel()
	_, post, wait := newCrowd(t, &demo{lost: 1})
	post(`{"shoppers":3,"trouble":0}`)
	assert.Equal(t, wait().Broken, "2 orders in the ledger, and the run placed 3")
}

func TestAPaymentThatWasNotStoredIsFound(t *testing.T) {
	t.Parallel()
	_, post, wait := newCrowd(t, &demo{unstored: 1})
	post(`{"shoppers":3,"trouble":0}`)
	r := wait()
	assert.Equal(t, r.Broken, "2 payments stored for 3 orders")
	assert.Equal(t, *r.Holds, false)
}

func TestMoneyOfAnotherAmountThanTheOrdersIsFound(t *testing.T) {
	t.Parallel()
	for _, more := range []int64{1, -1} {
		_, post, wait := newCrowd(t, &demo{more: more})
		post(`{"shoppers":3,"trouble":0}`)
		r := wait()
		want := r.Doors[0].Want
		assert.Equal(t, r.Broken, fmt.Sprintf("%d taken for orders of %d, in minor units", want+more, want))
		assert.Equal(t, *r.Holds, false)
	}
}

func TestARunThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	_, post, _ := newCrowd(t, &demo{})
	for body, want := range map[string]string{
		`{"shoppers":0}`:    "shoppers is 0; it must be from 1 to 1000",
		`{"shoppers":1001}`: "shoppers is 1001",
		`{"trouble":21}`:    "trouble is 21; it must be from 0 to 20 percent",
		`{"trouble":-1}`:    "trouble is -1",
		`{"speed":1}`:       "speed",
		`[`:                 "the body must be",
	} {
		status, reply := post(body)
		assert.Equal(t, status, http.StatusBadRequest, "%s", body)
		assert.Contains(t, reply, want)
		assert.Contains(t, reply, `"code":"crowd-invalid"`)
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	d := &demo{}
	c, post, wait := newCrowd(t, d)
	d.mu.Lock() // nobody is answered
	status, _ := post(`{"shoppers":1,"trouble":0}`)
	assert.Equal(t, status, http.StatusAccepted)
	status, reply := post(`{"shoppers":1,"trouble":0}`)
	assert.Equal(t, status, http.StatusConflict)
	assert.Contains(t, reply, `"code":"crowd-running"`)
	assert.Contains(t, reply, `"title":"A run is under way"`)
	assert.Contains(t, reply, `"detail":"a run is under way: start another when it has ended"`)
	now := c.Report()
	assert.True(t, now.Running, "the first is gone")
	assert.True(t, now.Holds == nil && now.Doors[0].Ledger == nil, "there is a result before the end: %+v", now)
	d.mu.Unlock()
	assert.True(t, *wait().Holds, "the first does not hold")
}

func TestARunSaysThatTheBankIgnoredItsKeys(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		_, post, wait := newCrowd(t, &demo{forgets: forgets, twice: true})
		code, said := post(`{"shoppers":2,"trouble":0}`)
		assert.Equal(t, code, http.StatusAccepted, "%s", said)
		got := wait()
		assert.Equal(t, got.BankForgets, forgets)
		assert.True(t, got.Holds != nil && !*got.Holds, "it does not hold, whoever is to blame")
	}
}
