// Package crowd lets many shoppers place the same orders at every door of the
// reference system, while requests and replies get lost and the service is
// killed, and holds the money against the orders at the end.
//
// The same seed draws the same prices and the same faults. What a killed
// service takes down with it depends on the moment, so the counts of the two
// doors that promise nothing differ a little from run to run. At the door with
// Semel they do not, and the run says so when they do.
package crowd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// The limits and constants of a run. Each is on the page.
const (
	// MaxShoppers is the most that one run may have.
	MaxShoppers = 1000
	// MaxTrouble is the largest share of orders that may meet a fault, in
	// percent: over that the service is hardly ever up.
	MaxTrouble = 20
	// DefaultShoppers and DefaultTrouble are what is taken where nothing is said.
	DefaultShoppers = MaxShoppers
	DefaultTrouble  = 10
	// AtOnce is how many requests are on their way at most.
	AtOnce = 24
	// Patience is how long a shopper waits for an answer: less than
	// payments.SlowFor, so that a slow answer comes too late.
	Patience = 2 * time.Second
	// MinPause and MaxPause are between which a shopper waits before sending
	// again, unless an answer says how long.
	MinPause = 100 * time.Millisecond
	MaxPause = 300 * time.Millisecond
	// SettleWithin is how long the bank may still be busy with requests that
	// nobody waits for any more; the money is counted after that.
	SettleWithin = payments.SlowFor + 500*time.Millisecond
	// NewsEvery is the least time between two pieces of news of a run, but for
	// its last.
	NewsEvery = time.Second
	// Within is when a run ends, whoever is still without an answer.
	Within = 55 * time.Second
)

// Settings are what one may choose.
type Settings struct {
	// Seed draws prices, faults and pauses.
	Seed uint64 `json:"seed"`
	// Shoppers is how many there are at each door, 1 to MaxShoppers.
	Shoppers int `json:"shoppers"`
	// Trouble is how many of a hundred orders meet a fault when they are first
	// sent, 0 to MaxTrouble.
	Trouble int `json:"trouble"`
	// NewKeys makes a shopper take another key for each send, which is the
	// mistake that nothing behind can repair.
	NewKeys bool `json:"newKeys"`
}

// check names the first field that is wrong.
func (s Settings) check() (field, detail string) {
	switch {
	case s.Shoppers < 1 || s.Shoppers > MaxShoppers:
		return "shoppers", fmt.Sprintf("shoppers is %d; it must be from 1 to %d", s.Shoppers, MaxShoppers)
	case s.Trouble < 0 || s.Trouble > MaxTrouble:
		return "trouble", fmt.Sprintf("trouble is %d; it must be from 0 to %d percent", s.Trouble, MaxTrouble)
	}
	return "", ""
}

// Report is what is known of the latest run.
type Report struct {
	Settings
	// Running is true until the money has been counted.
	Running bool `json:"running"`
	// Done is how many orders have come to an end, of Shoppers at each door.
	Done int `json:"done"`
	// Seconds is how long the run has taken.
	Seconds float64 `json:"seconds"`
	Doors   []Part  `json:"doors"`
	// Holds says that at the door with Semel each order was answered and taken
	// once, Broken why not, and Failed why there is no result. It is nil while
	// there is none.
	Holds  *bool  `json:"holds"`
	Broken string `json:"broken,omitempty"`
	Failed string `json:"failed,omitempty"`
	// BankForgets says that the bank did not look at its keys when the run began
	// or ended: then it charges for each attempt that asks, and nothing before it
	// can keep it from that.
	BankForgets bool `json:"bankForgets,omitempty"`
}

// Part is a run at one door.
type Part struct {
	Door payments.Door `json:"door"`
	// Want is what the orders cost together, in minor units.
	Want int64 `json:"want"`
	// Sends is how many requests it took, Silent how many of them had no
	// answer, Replayed how many were answered from memory, and Open how many
	// orders have no answer to the end.
	Sends    int `json:"sends"`
	Silent   int `json:"silent"`
	Replayed int `json:"replayed"`
	Open     int `json:"open"`
	// Ledger is by how much the door's account has grown. It is nil until the
	// money has been counted.
	Ledger *payments.Account `json:"ledger"`
}

// Crowd plays runs, one at a time. See Run.
type Crowd struct {
	demo     *client.Client
	changed  func()
	start    chan Settings
	patience time.Duration

	mu     sync.Mutex
	report Report
	began  time.Time
	told   time.Time // when changed was called last
}

// New returns a crowd before the demo at base, "http://HOST:PORT". It starts
// nothing. It calls changed when there is news of a run, at most every
// NewsEvery while it goes on: who hears it looks at the whole demo.
func New(base string, changed func()) *Crowd {
	return &Crowd{
		demo:     client.New(base),
		changed:  changed,
		start:    make(chan Settings, 1),
		patience: Patience,
	}
}

// Run plays the runs that Handler is asked for, until ctx ends.
func (c *Crowd) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-c.start:
			c.play(ctx, s)
		}
	}
}

// Report returns what is known of the latest run.
func (c *Crowd) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Doors = append([]Part{}, r.Doors...)
	if r.Running {
		r.Seconds = time.Since(c.began).Seconds()
	}
	return r
}

// begin takes a run on unless there is one, and reports whether it did.
func (c *Crowd) begin(s Settings) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report.Running {
		return false
	}
	c.report = Report{Settings: s, Running: true}
	c.began = time.Now()
	for _, door := range payments.Doors() {
		c.report.Doors = append(c.report.Doors, Part{Door: door})
	}
	c.start <- s // there is room: no run was under way
	return true
}

// update changes the report.
func (c *Crowd) update(f func(r *Report)) {
	c.mu.Lock()
	f(&c.report)
	over := !c.report.Running || c.report.Done == c.report.Shoppers*len(c.report.Doors)
	due := over || time.Since(c.told) >= NewsEvery
	if due {
		c.told = time.Now()
	}
	c.mu.Unlock()
	if due {
		c.changed()
	}
}

// order is what one shopper wants, the same at each door.
type order struct {
	name  string
	price int64
	fault payments.Fault
	rng   *rand.Rand
}

// want is what the orders cost together.
func (s Settings) want() int64 {
	var sum int64
	for i := range s.Shoppers {
		sum += s.draw("", i).price
	}
	return sum
}

// draw draws the order of shopper i. Its name is new in each run, since a key
// used before would only be answered from memory.
func (s Settings) draw(run string, i int) order {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(i))) //nolint:gosec // it has to be repeatable.
	o := order{name: fmt.Sprintf("%s-%d", run, i), rng: rng, price: 100 * (10 + rng.Int64N(90))}
	if faults := payments.Faults(); rng.IntN(100) < s.Trouble {
		o.fault = faults[rng.IntN(len(faults))]
	}
	return o
}
