package scripts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

const (
	// settleWithin is how long the ledger may take to show what is on its way.
	settleWithin = payments.SlowFor + 3*time.Second
	// lookEvery is waited between two looks at the ledger.
	lookEvery = 25 * time.Millisecond
)

// Runner plays scripts against one running demo.
type Runner struct {
	base  string
	demo  *client.Client
	seed  uint64
	payer Payer
}

// New returns a runner against the demo at base, "http://HOST:PORT", that
// starts customers' programs as p says. The same seed gives the same keys, prices
// and pauses.
func New(base string, seed uint64, p Payer) *Runner {
	return &Runner{base: base, demo: client.New(base), seed: seed, payer: p}
}

// draws returns a generator for one client of a script at one door, or for the
// order with number zero. Each has its own: what one draws does not depend on
// how often and when the others did.
func (r *Runner) draws(script string, door payments.Door, client int) *rand.Rand {
	whose := fnv.New64a()
	fmt.Fprintf(whose, "%s %s %d", script, door, client)
	return rand.New(rand.NewPCG(r.seed, whose.Sum64())) //nolint:gosec // it has to be repeatable.
}

// Report is what a script found.
type Report struct {
	Script string `json:"script"`
	What   string `json:"what"`
	// Lesson is what there was to learn. A script that did not hold has none,
	// or another one.
	Lesson string `json:"lesson,omitempty"`
	// Holds says that everything was as it should be.
	Holds bool   `json:"holds"`
	Doors []Part `json:"doors"`
}

// Part is a script at one door.
type Part struct {
	Door payments.Door `json:"door"`
	// Keeps says where the client has its intent, "disk" or "memory", where it
	// is the client that is killed.
	Keeps string `json:"keeps,omitempty"`
	Price int64  `json:"price"` // minor units
	Tries []Try  `json:"tries"`
	// Ledger is by how much the door's account has grown.
	Ledger payments.Account `json:"ledger"`
	// Payment is the id that the client was told, and Asked how often the bank
	// was asked under the key of the charge that the client was told.
	Payment string `json:"payment,omitempty"`
	Asked   int64  `json:"asked,omitempty"`
	// AnsweredAfter is how long the order was without a final answer, in
	// seconds.
	AnsweredAfter float64 `json:"answeredAfter"`
	// Broken says which promise was not kept, if one was not.
	Broken string `json:"broken,omitempty"`
}

func (p Part) last() Try { return p.Tries[len(p.Tries)-1] }

// Run plays s at each of its doors. The error is a fault of the script, not of
// what it looks at: that is in the report.
func (r *Runner) Run(ctx context.Context, s Script) (Report, error) {
	play := r.playDoors
	if s.crash {
		play = r.crash
	}
	parts, err := play(ctx, s)
	report := Report{Script: s.Name, What: s.What, Holds: true, Doors: parts}
	if err != nil {
		return report, fmt.Errorf("script %s, %w", s.Name, err)
	}
	for _, part := range parts {
		report.Holds = report.Holds && part.Broken == ""
	}
	report.Lesson = s.lesson(report)
	return report, nil
}

func (r *Runner) playDoors(ctx context.Context, s Script) ([]Part, error) {
	doors := []payments.Door{payments.Keyed, payments.Keyless}
	if s.naive {
		doors = payments.Doors()
	}
	var parts []Part
	for _, door := range doors {
		part, err := r.play(ctx, s, door)
		if err != nil {
			return parts, fmt.Errorf("%s: %w", door.Path(), err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// lesson is what a report teaches. What a script is there to show has not been
// seen where it did not hold.
func (s *Script) lesson(report Report) string {
	if report.Holds {
		return s.Lesson
	}
	for _, part := range report.Doors {
		if part.Door == payments.Keyed && part.Asked > 1 && part.Ledger.TooMany() > 0 {
			return "The bank was asked again under the same operation id, and did not look at it. Semel can only make the id the same."
		}
	}
	return ""
}

// play places one order at one door.
func (r *Runner) play(ctx context.Context, s Script, door payments.Door) (Part, error) {
	before, err := r.demo.Ledger(ctx, payments.Anonymous)
	if err != nil {
		return Part{}, err
	}
	if err := r.arm(ctx, s.fault, s.times); err != nil {
		return Part{}, err
	}
	o, price := r.newOrder(s, door)
	part := Part{Door: door, Price: price}
	within, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	start := time.Now()
	part.Tries = r.placeTogether(within, s, o, start)
	part.AnsweredAfter = seconds(time.Since(start))
	part.Ledger, err = r.settled(ctx, door, before[door], s.charges(door))
	if err != nil {
		return part, err
	}
	last := part.last()
	part.Payment = last.Payment
	if part.Asked, err = r.asked(ctx, last.Charge); err != nil {
		return part, err
	}
	part.Broken = s.judge(part)
	return part, nil
}

// newOrder draws an order and its price.
func (r *Runner) newOrder(s Script, door payments.Door) (order, int64) {
	rng := r.draws(s.Name, door, 0)
	price := 100 * (10 + rng.Int64N(90))
	body := payments.Marshal(payments.Order{Amount: price, Currency: "USD", RecipientID: "r_123"})
	return order{
		door:     door,
		id:       fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()),
		body:     body,
		patience: s.patience,
	}, price
}

// placeTogether lets several clients place the same order at once.
func (r *Runner) placeTogether(ctx context.Context, s Script, o order, start time.Time) []Try {
	var (
		clients sync.WaitGroup
		mu      sync.Mutex
		tries   []Try
	)
	for client := 1; client <= s.clicks; client++ {
		clients.Go(func() {
			own := o
			own.pauses = r.draws(s.Name, o.door, client)
			mine := r.place(ctx, own, client, start)
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries, mine...)
		})
	}
	clients.Wait()
	slices.SortFunc(tries, func(a, b Try) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Client, b.Client))
	})
	return tries
}

// charges is how often the bank takes money for one order at that door.
func (s *Script) charges(door payments.Door) int64 {
	if door != payments.Keyed && s.doubles {
		return 2
	}
	return 1
}

// judge returns which promise part breaks, or nothing.
func (s *Script) judge(part Part) string {
	last := make(map[int]Try)
	for _, t := range part.Tries {
		last[t.Client] = t
	}
	for client, t := range last {
		if t.Status != http.StatusCreated {
			return fmt.Sprintf("client %d knew of no payment after %.1f s: %s", client, part.AnsweredAfter, t.Saw)
		}
	}
	want := s.charges(part.Door)
	got := part.Ledger
	switch {
	case got.Orders != 1:
		return fmt.Sprintf("the ledger counts %d orders for one", got.Orders)
	case got.Charges != want || got.Charged != 1 || got.Taken != want*part.Price:
		return fmt.Sprintf("it should have taken %s in %s", payments.Money(want*part.Price), count(want, "charge"))
	case part.Door == payments.Keyed:
		return s.judgeKeyed(part)
	}
	return ""
}

// judgeKeyed looks at what only the door with Semel promises.
func (s *Script) judgeKeyed(part Part) string {
	for _, t := range part.Tries {
		switch {
		case t.Status != http.StatusCreated:
		case t.Payment != part.Payment:
			return fmt.Sprintf("one client was told of payment %s, another of payment %s", payments.Short(t.Payment), payments.Short(part.Payment))
		case t.Charge != t.Payment:
			return fmt.Sprintf("payment %s was charged under another id, %s, so another attempt would be charged again", payments.Short(t.Payment), payments.Short(t.Charge))
		}
	}
	switch {
	case part.Ledger.Payments != 1:
		return fmt.Sprintf("the service stored %d payments for one order", part.Ledger.Payments)
	case part.Asked != s.asks:
		return fmt.Sprintf("the bank was asked %d times under the payment's id, not %d", part.Asked, s.asks)
	}
	return ""
}

// settled waits until the door's account has grown by the charges that are
// expected, or for so long that it will not, and returns by how much it has.
func (r *Runner) settled(ctx context.Context, door payments.Door, before payments.Account, charges int64) (payments.Account, error) {
	deadline := time.Now().Add(settleWithin)
	for {
		now, err := r.demo.Ledger(ctx, payments.Anonymous)
		if err != nil {
			return payments.Account{}, err
		}
		grown := now[door].Minus(before)
		if grown.Charges >= charges || time.Now().After(deadline) {
			return grown, nil
		}
		if payments.Pause(ctx, lookEvery); ctx.Err() != nil {
			return grown, context.Cause(ctx)
		}
	}
}

// asked returns how often the bank was asked under the key of the charge with
// that id, or zero where it has none of that id.
func (r *Runner) asked(ctx context.Context, id string) (int64, error) {
	var charge struct {
		Asked int64 `json:"asked"`
	}
	if id == "" {
		return 0, nil
	}
	err := r.demo.Ask(ctx, http.MethodGet, "/charges/"+id, nil, &charge)
	if refused, ok := errors.AsType[*client.RefusedError](err); ok && refused.Status == http.StatusNotFound {
		err = nil
	}
	return charge.Asked, err
}

func (r *Runner) arm(ctx context.Context, fault payments.Fault, times int) error {
	return r.demo.Ask(ctx, http.MethodPost, "/demo/faults", map[string]any{"fault": fault, "times": times}, nil)
}
