package load

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

const (
	// workers is how many processes share a store.
	workers = 4
	// accounts is how many there are. Each key is used by all of them, for
	// different payments.
	accounts = 3
	// Each payment is sent from leastSends to mostSends times.
	leastSends, mostSends = 3, 10
	// maxDown is how long a server may be left down, beyond its own start. Every
	// other time it is down for longDown more: longer than a finish is repeated.
	maxDown, longDown = 300 * time.Millisecond, 1500 * time.Millisecond
	// slowOnes is how many slow payments a worker has when it is frozen. Others
	// ask for them too, so that they are taken over meanwhile.
	slowOnes = 5
)

// service is part of every operation id.
const service = "load"

// payment is one intent, under one key.
type payment struct {
	account string
	key     string
	amount  int64
	slow    bool // its work takes so long that a worker can be frozen amid it
}

func (p *payment) scope() string { return "account:" + p.account }

func (p *payment) operation() string {
	return semel.NewOperationID(service, p.scope(), p.key, 0).String()
}

// body is the payment as it is sent.
func (p *payment) body() string { return fmt.Sprintf(`{"amount":%d}`, p.amount) }

// sending is one client that wants one payment's answer, and asks until it has
// it.
type sending struct {
	payment int
	worker  int // where it asks first
}

// strike is something that happens to a server or a worker, once the sending
// of that number is taken.
type strike struct {
	at     int
	freeze bool          // a worker is stopped for longer than its lease; else the server is restarted
	worker int           // that is frozen
	down   time.Duration // between the server's end and its start
}

// plan is all that a seed decides about a run.
type plan struct {
	seed     uint64
	payments []payment
	sendings []sending // in the order in which clients take them
	strikes  []strike
}

// newPlan draws a plan. Half of the repeats of a payment come together with its
// first sending, the others later. What strikes does so while there are
// payments that are new.
func newPlan(seed uint64, payments, restarts, freezes int) *plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &plan{seed: seed, payments: make([]payment, payments)}
	p.strikes = drawStrikes(rng, payments, restarts, freezes)
	var all []placed
	for n := range payments {
		p.payments[n] = payment{
			account: fmt.Sprintf("a%d", n%accounts),
			key:     fmt.Sprintf("load-%d-%d", seed, n/accounts),
			amount:  1 + rng.Int64N(9999),
		}
		var mine []placed
		for i := range leastSends + rng.IntN(mostSends-leastSends+1) {
			at := float64(n)
			if i > 0 && rng.IntN(2) == 0 {
				at += rng.ExpFloat64() * float64(payments) / 4
			}
			mine = append(mine, placed{sending{n, rng.IntN(workers)}, at})
		}
		for _, s := range p.strikes {
			if s.freeze && n >= s.at-slowOnes && n < s.at {
				p.payments[n].slow = true
				mine[0].worker, mine[1].worker = s.worker, (s.worker+1)%workers
				mine[1].at = float64(n)
			}
		}
		all = append(all, mine...)
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	for _, s := range all {
		p.sendings = append(p.sendings, s.sending)
	}
	for i := range p.strikes {
		s := &p.strikes[i]
		s.at = slices.IndexFunc(all, func(of placed) bool { return of.at >= float64(s.at) })
	}
	return p
}

// placed is a sending with its place among the payments.
type placed struct {
	sending

	at float64
}

// drawStrikes draws what strikes, each by the payment that is new then. Freezes
// come after every other restart, and at the end.
func drawStrikes(rng *rand.Rand, payments, restarts, freezes int) []strike {
	var all []strike
	total := restarts + freezes
	for i := range total {
		s := strike{
			at:     payments * (i + 1) / (total + 1),
			worker: rng.IntN(workers),
			down:   time.Duration(rng.Int64N(int64(maxDown))),
		}
		if s.freeze = freezes > 0 && (i%2 == 1 || restarts == 0); s.freeze {
			freezes--
		} else {
			restarts--
		}
		if i%2 == 1 {
			s.down += longDown
		}
		all = append(all, s)
	}
	return all
}

// sum is the money of all payments.
func (p *plan) sum() int64 {
	total := int64(0)
	for _, pay := range p.payments {
		total += pay.amount
	}
	return total
}
