package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A mishap is what goes wrong with one try of an order.
type mishap struct {
	kind kind
	// after is when it happens, counted from when the request is sent. It
	// means something for strikes and for a client that hangs up.
	after time.Duration
}

// kind names a mishap.
type kind string

// What happens on the way.
const (
	nothing kind = ""
	bodyCut kind = "body cut"       // the client breaks off within the body
	hungUp  kind = "client hung up" // the client does not wait for the answer
)

// The demo's own faults, by their names.
const (
	requestLost        kind = "request-lost"
	replyLost          kind = "reply-lost"
	killedBeforeCharge kind = "killed-before-charge"
	killedAfterCharge  kind = "killed-after-charge"
	bankError          kind = "bank-error"
	slow               kind = "slow"
)

// What strikes a process while the request is on its way.
const (
	killService    kind = "service" // the one that the request went to
	killBank       kind = "bank"
	killEverything kind = "everything" // all processes of the run
	killSupervisor kind = "supervisor"
	freezeService  kind = "frozen" // stopped for longer than a lease, then let go on
	// freezeAtWork is the same while it waits for a slow bank, so that it is
	// taken over for sure and does not know when it goes on.
	freezeAtWork kind = "frozen at work"
)

// fault returns the demo's own fault that the request meets, if it does.
func (k kind) fault() kind {
	switch k {
	case requestLost, replyLost, killedBeforeCharge, killedAfterCharge, bankError, slow:
		return k
	case freezeAtWork:
		return slow
	}
	return nothing
}

// isStrike reports whether the run brings k about with a signal.
func (k kind) isStrike() bool {
	switch k {
	case killService, killBank, killEverything, killSupervisor, freezeService, freezeAtWork:
		return true
	}
	return false
}

// odds are how likely each kind is. The last ones need a supervisor: they are
// the front's to bring about, so the request goes there.
var odds = []struct {
	kind       kind
	weight     int
	supervised bool
}{
	{nothing, 30, false},
	{bodyCut, 5, false},
	{hungUp, 10, false},
	{killedBeforeCharge, 4, false},
	{killedAfterCharge, 6, false},
	{bankError, 4, false},
	{slow, 1, false},
	{killService, 24, false},
	{killBank, 8, false},
	{killEverything, 2, false},
	{freezeService, 2, false},
	{requestLost, 5, true},
	{replyLost, 5, true},
	{killSupervisor, 5, true},
}

// needsFront reports whether only the supervisor's front can bring k about.
func (k kind) needsFront() bool {
	for _, o := range odds {
		if o.kind == k {
			return o.supervised
		}
	}
	return false
}

const (
	// maxMishaps is how many tries of one client may go wrong. All later ones
	// are sent as they should be.
	maxMishaps = 3
	// arriveWithin is the time in which all orders are placed.
	arriveWithin = 1500 * time.Millisecond
	// strikeWithin bounds the moments of strikes and of clients that hang up.
	// Early ones are likelier, since most requests do not take as long.
	strikeWithin = 60 * time.Millisecond
	// customers is how many there are. Each key is used by all of them, for
	// different orders.
	customers = 3
)

// A plan is all that a seed decides about a run.
type plan struct {
	seed       uint64
	door       string // where the orders go
	forgets    bool   // the bank does not look at keys
	supervised bool   // "semel demo" runs the bank and one of the services
	services   int
	orders     []order
}

// An order is one intent of a customer.
type order struct {
	number    int
	customer  string
	key       string
	amount    int64
	recipient string // the order's own, or declined
	at        time.Duration
	last      bool     // it is placed when all others are answered, and nothing else strikes
	clients   []client // each sends it until it has the answer
}

const declined = "r_declined"

// A client is one place from where an order is sent.
type client struct {
	seed    uint64 // of its pauses and of where it sends
	polite  bool   // it waits as long as Retry-After says
	mishaps []mishap
	door    int // the one that it sends to, counted from 1; zero is any
}

// body is the order as it is sent.
func (o *order) body() string {
	return fmt.Sprintf(`{"amount":%d,"currency":"USD","recipientId":%q}`, o.amount, o.recipient)
}

const keyedDoor = "/payments"

// newPlan draws a plan.
func newPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, door: keyedDoor, supervised: seed%4 == 0, services: 2 + rng.IntN(2)}
	for n := range 10 + rng.IntN(9) {
		o := newOrder(seed, n)
		o.amount = 100 + rng.Int64N(9900)
		o.at = time.Duration(rng.Int64N(int64(arriveWithin)))
		if rng.IntN(16) == 0 {
			o.recipient = declined
		}
		clients := 1
		if rng.IntN(4) == 0 {
			clients = 2
		}
		for range clients {
			c := client{seed: rng.Uint64(), polite: rng.IntN(3) == 0}
			for range 1 + rng.IntN(maxMishaps) {
				c.mishaps = append(c.mishaps, draw(rng, p.supervised))
			}
			o.clients = append(o.clients, c)
		}
		p.orders = append(p.orders, o)
	}
	if seed%4 == 1 {
		p.orders = append(p.orders, overlapping(seed, len(p.orders)))
	}
	return p
}

// overlapping is an order whose first attempt is frozen at work and taken over.
// It goes on while the one that took over is at work too. It finds its lease
// lapsed and does not know its end: nothing but the fence keeps it from writing
// that over the other's claim then.
func overlapping(seed uint64, n int) order {
	o := newOrder(seed, n)
	o.last = true
	// The second client comes a moment later, and asks until it takes over.
	later := slices.Concat([]mishap{{kind: bodyCut}}, slices.Repeat([]mishap{{kind: slow}}, 40))
	o.clients = []client{
		{seed: seed, door: 1, mishaps: []mishap{{kind: freezeAtWork, after: strikeWithin}}},
		{seed: seed + 1, door: 2, mishaps: later},
	}
	return o
}

// newOrder returns the n-th order of a run, without anybody who sends it.
func newOrder(seed uint64, n int) order {
	return order{
		number:    n,
		customer:  fmt.Sprintf("c_%d", n%customers),
		key:       fmt.Sprintf("storm-%d-%d", seed, n/customers),
		amount:    2500,
		recipient: fmt.Sprintf("r_%d", n),
	}
}

// draw draws a mishap.
func draw(rng *rand.Rand, supervised bool) mishap {
	total := 0
	for _, o := range odds {
		if supervised || !o.supervised {
			total += o.weight
		}
	}
	early := rng.Float64()
	m := mishap{after: time.Duration(early * early * float64(strikeWithin))}
	at := rng.IntN(total)
	for _, o := range odds {
		if o.supervised && !supervised {
			continue
		}
		if at -= o.weight; at < 0 {
			m.kind = o.kind
			break
		}
	}
	return m
}
