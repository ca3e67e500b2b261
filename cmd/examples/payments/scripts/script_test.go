package scripts

import (
	"bytes"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestEveryFaultHasAScriptOfItsName(t *testing.T) {
	t.Parallel()
	for _, fault := range payments.Faults() {
		found, err := Find(string(fault))
		assert.NoError(t, err)
		assert.Equal(t, len(found), 1)
		assert.Equal(t, found[0].fault, fault)
		assert.True(t, found[0].Lesson != "", "%s teaches something", fault)
	}
	all, err := Find(All)
	assert.NoError(t, err)
	assert.Equal(t, len(all), len(payments.Faults())+2, "the faults, double-click and client-crash")
}

func TestAnUnknownScriptIsRefusedWithTheNames(t *testing.T) {
	t.Parallel()
	_, err := Find("earthquake")
	if err == nil {
		t.Fatal("got no error, want one")
	}
	assert.Contains(t, err.Error(), `"earthquake"; there are request-lost, reply-lost, killed-before-charge`)
}

// good returns the part that s expects at door.
func good(s Script, door payments.Door) Part {
	charges := s.charges(door)
	return Part{
		Door:    door,
		Price:   2500,
		Tries:   []Try{{Client: 1}, {Client: 1, Status: 201, Payment: "p1", Charge: "p1"}},
		Payment: "p1",
		Asked:   s.asks,
		Ledger:  payments.Account{Orders: 1, Payments: 1, Charges: charges, Charged: min(charges, 1), Taken: charges * 2500},
	}
}

func TestAScriptHoldsWhenTheMoneyIsRight(t *testing.T) {
	t.Parallel()
	for _, s := range List() {
		for _, door := range payments.Doors() {
			assert.Equal(t, s.judge(good(s, door)), "", "%s at %s", s.Name, door)
		}
	}
}

func TestAScriptBreaksWhen(t *testing.T) {
	t.Parallel()
	found, err := Find(string(payments.KilledAfterCharge))
	assert.NoError(t, err)
	s := found[0]
	for name, c := range map[string]struct {
		door   payments.Door
		damage func(*Part)
		want   string
	}{
		"the client was never answered": {
			payments.Keyed,
			func(p *Part) { p.Tries = p.Tries[:1]; p.Tries[0].Saw = "nothing" },
			"client 1 knew of no payment after 0.0 s: nothing",
		},
		"one of two clients was never answered": {
			payments.Keyed,
			func(p *Part) { p.Tries = append(p.Tries, Try{Client: 2, Status: 409, Saw: "409 in-progress"}) },
			"client 2 knew of no payment",
		},
		"the money was taken twice with a key": {
			payments.Keyed,
			func(p *Part) { p.Ledger.Charges, p.Ledger.Taken = 2, 5000 },
			"it should have taken $25.00 in 1",
		},
		"too little money was taken": {
			payments.Keyed, func(p *Part) { p.Ledger.Taken-- }, "it should have taken $25.00 in 1",
		},
		"the money was not taken twice without a key": {
			payments.Keyless,
			func(p *Part) { p.Ledger.Charges, p.Ledger.Taken = 1, 2500 },
			"it should have taken $50.00 in 2",
		},
		"one order is counted as two": {
			payments.Keyed, func(p *Part) { p.Ledger.Orders = 2 }, "the ledger counts 2 orders for one",
		},
		"the payment is missing": {
			payments.Keyed, func(p *Part) { p.Ledger.Payments = 0 }, "the service stored 0 payments",
		},
		"it was charged under another id": {
			payments.Keyed, func(p *Part) { p.Tries[1].Charge = "c1" }, "payment p1 was charged under another id, c1",
		},
		"two answers name two payments": {
			payments.Keyed,
			func(p *Part) {
				p.Tries = append([]Try{{Client: 2, Status: 201, Payment: "p2", Charge: "p2"}}, p.Tries...)
			},
			"one client was told of payment p2, another of payment p1",
		},
		"the bank was not asked again": {
			payments.Keyed, func(p *Part) { p.Asked = 1 }, "asked 1 times under the payment's id, not 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := good(s, c.door)
			c.damage(&p)
			assert.Contains(t, s.judge(p), c.want)
		})
	}
}

func TestAScriptThatDidNotHoldDoesNotTeachWhatItWouldHave(t *testing.T) {
	t.Parallel()
	found, err := Find(string(payments.KilledAfterCharge))
	assert.NoError(t, err)
	s := found[0]
	part := good(s, payments.Keyed)
	assert.Equal(t, s.lesson(Report{Holds: true, Doors: []Part{part}}), s.Lesson)
	assert.Equal(t, s.lesson(Report{Doors: []Part{part}}), "")
	part.Ledger.Charges = 2
	assert.Contains(t, s.lesson(Report{Doors: []Part{part}}), "did not look at it")
}

func TestTheSameSeedPlaysTheSameOrders(t *testing.T) {
	t.Parallel()
	s := Script{Name: "a", patience: patience}
	a, priceA := New("", 7, Payer{}).newOrder(s, payments.Keyed)
	b, priceB := New("", 7, Payer{}).newOrder(s, payments.Keyed)
	other, _ := New("", 8, Payer{}).newOrder(s, payments.Keyed)
	assert.Equal(t, a, b)
	assert.Equal(t, priceA, priceB)
	assert.True(t, a.id != other.id, "another seed makes other keys")
}

func TestWhatOneClientDrawsDoesNotDependOnTheOthers(t *testing.T) {
	t.Parallel()
	s := Script{Name: "a"}
	pauses := func(r *Runner, door payments.Door, client int) [3]time.Duration {
		o := order{pauses: r.draws(s.Name, door, client)}
		return [3]time.Duration{o.pause(), o.pause(), o.pause()}
	}
	alone, last := New("", 7, Payer{}), New("", 7, Payer{})
	wantOrder, _ := alone.newOrder(s, payments.Naive)
	want := pauses(alone, payments.Naive, 2)
	for client := range 3 {
		last.newOrder(s, payments.Keyed)
		got := pauses(last, payments.Keyed, client)
		assert.True(t, got != want, "another client at another door pauses otherwise")
	}
	gotOrder, _ := last.newOrder(s, payments.Naive)
	assert.Equal(t, gotOrder, wantOrder)
	assert.Equal(t, pauses(last, payments.Naive, 2), want)
}

func TestAReportSaysWhatWasSentAndWhatTheMoneySays(t *testing.T) {
	t.Parallel()
	found, err := Find(string(payments.ReplyLost))
	assert.NoError(t, err)
	s := found[0]
	with, without := good(s, payments.Keyed), good(s, payments.Keyless)
	with.Tries[0].Saw, with.Asked = "no answer", 2
	without.Broken = "a promise"
	var out bytes.Buffer
	Report{Script: s.Name, What: s.What, Lesson: s.Lesson, Doors: []Part{with, without}}.Print(&out)
	for _, want := range []string{
		"reply-lost: the payment service answers",
		"With a key (POST /payments), an order of $25.00",
		"client 1 sends the order; at 0.00 s: no answer",
		"client 1 sends it again",
		"1 order, 1 payment; the bank took $25.00 in 1 charge. Right.",
		"The bank was asked 2 times under p1, and took the money once.",
		"1 order, 1 payment; the bank took $50.00 in 2 charges. BROKEN: a promise.",
		s.Lesson,
	} {
		assert.Contains(t, out.String(), want)
	}
}
