package scripts

import (
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// survived returns the part that a crash of a client with its intent there leaves.
func survived(keeps string) Part {
	p := Part{
		Door: payments.Keyed, Keeps: keeps, Price: 2500, Payment: "p1", Asked: 1,
		Tries: []Try{
			{Client: 1, Process: 11, Killed: true, key: "k1"},
			{Client: 2, Process: 12, Found: true, Status: 201, Replayed: true, Payment: "p1", Charge: "p1", key: "k1"},
		},
		Ledger: payments.Account{Orders: 1, Payments: 1, Charges: 1, Charged: 1, Taken: 2500},
	}
	if keeps == inMemory {
		last := &p.Tries[1]
		last.Found, last.Replayed, last.key = false, false, "k2"
		p.Ledger.Payments, p.Ledger.Charges, p.Ledger.Taken = 2, 2, 5000
	}
	return p
}

func TestACrashOfTheClientHoldsWhenTheMoneyIsRight(t *testing.T) {
	t.Parallel()
	assert.Equal(t, judgeCrash(survived(onDisk)), "")
	assert.Equal(t, judgeCrash(survived(inMemory)), "", "the harm is what there is to see")
}

func TestACrashOfTheClientBreaksWhen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keeps  string
		damage func(*Part)
		want   string
	}{
		"nobody was killed": {
			onDisk, func(p *Part) { p.Tries[0] = Try{Status: 201, Saw: "201 paid"} }, "was not killed while it waited: 201 paid",
		},
		"the second process has no answer": {
			onDisk, func(p *Part) { p.Tries[1].Status, p.Tries[1].Saw = 0, "nothing" }, "process 12 knew of no payment after 0.0 s: nothing",
		},
		"it is charged twice": {
			onDisk, func(p *Part) { p.Ledger.Charges, p.Ledger.Taken = 2, 5000 }, "it should have taken $25.00 in 1 charge",
		},
		"it is stored twice": {
			onDisk, func(p *Part) { p.Ledger.Payments = 2 }, "the service stored 2 payments and not 1",
		},
		"it is counted twice": {
			onDisk, func(p *Part) { p.Ledger.Orders = 2 }, "the ledger counts 2 orders for one",
		},
		"the key is another": {
			onDisk, func(p *Part) { p.Tries[1].key = "k2" }, "the second process sent another key",
		},
		"the intent was made anew": {
			onDisk, func(p *Part) { p.Tries[1].Found = false }, "the second process sent another key",
		},
		"the work ran again": {
			onDisk, func(p *Part) { p.Tries[1].Replayed = false }, "was not given the answer that the first one did not read",
		},
		"the harm does not show": {
			inMemory, func(p *Part) { p.Ledger.Charges, p.Ledger.Taken = 1, 2500 }, "it should have taken $50.00 in 2 charges",
		},
		"memory outlives a process": {
			inMemory, func(p *Part) { p.Tries[1].key = "k1" }, "what was in memory has outlived its process",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := survived(c.keeps)
			c.damage(&p)
			assert.Contains(t, judgeCrash(p), c.want)
		})
	}
}
