package crowd

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// play lets everybody shop, waits for what is still on its way, and counts.
func (c *Crowd) play(ctx context.Context, s Settings) {
	before, err := c.demo.Ledger(ctx, payments.Crowd)
	if err != nil {
		c.fail(err)
		return
	}
	forgot, err := c.bankForgets(ctx)
	if err != nil {
		c.fail(err)
		return
	}
	c.update(func(r *Report) {
		for i := range r.Doors {
			r.Doors[i].Want = s.want()
		}
	})
	within, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	run := "crowd-" + strings.ToLower(rand.Text()[:10])
	slots := make(chan struct{}, AtOnce)
	var shoppers sync.WaitGroup
	for i := range s.Shoppers {
		for d, door := range payments.Doors() {
			o := s.draw(run, i)
			shoppers.Go(func() { c.shop(within, visit{order: o, door: door, part: d, newKeys: s.NewKeys, slots: slots}) })
		}
	}
	shoppers.Wait()
	if s.Trouble > 0 {
		payments.Pause(ctx, SettleWithin)
	}
	after, err := c.demo.Ledger(ctx, payments.Crowd)
	if err != nil {
		c.fail(err)
		return
	}
	forgets, err := c.bankForgets(ctx)
	if err != nil {
		c.fail(err)
		return
	}
	c.update(func(r *Report) {
		r.BankForgets = forgot || forgets
		for i, p := range r.Doors {
			grown := after[p.Door].Minus(before[p.Door])
			r.Doors[i].Ledger = &grown
		}
		r.judge()
		r.Seconds = time.Since(c.began).Seconds()
		r.Running = false
	})
}

// bankForgets reports whether the bank does not look at its keys.
func (c *Crowd) bankForgets(ctx context.Context) (bool, error) {
	var bank struct {
		Dedupe bool `json:"dedupe"`
	}
	err := c.demo.Ask(ctx, http.MethodGet, "/demo/bank", nil, &bank)
	return !bank.Dedupe, err
}

func (c *Crowd) fail(err error) {
	c.update(func(r *Report) { r.Failed, r.Running = err.Error(), false })
}

// judge says what is wrong at the door with Semel, if something is. Nothing is
// said of money that is not all the run's, nor where the other doors left
// something open: they promise nothing, and there is nothing to compare with.
func (r *Report) judge() {
	for _, p := range r.Doors {
		switch {
		case p.Open > 0 && p.Door != payments.Keyed:
			r.Failed = fmt.Sprintf("time was up: %d orders at the door %s were not answered within %v", p.Open, p.Door, Within)
			return
		case p.Ledger.Orders > int64(r.Shoppers):
			r.Failed = fmt.Sprintf("somebody else paid as the customer %s: there are %d new orders at the door %s, and the run placed %d",
				payments.Crowd, p.Ledger.Orders, p.Door, r.Shoppers)
			return
		}
	}
	r.Broken = r.wrong()
	holds := r.Broken == ""
	r.Holds = &holds
}

// wrong holds the money against the orders.
func (r *Report) wrong() string {
	n := int64(r.Shoppers)
	for _, p := range r.Doors {
		if p.Door != payments.Keyed {
			continue
		}
		switch a := p.Ledger; {
		case p.Open > 0:
			return fmt.Sprintf("time was up: %d orders at the door %s were not answered within %v", p.Open, p.Door, Within)
		case a.Orders != n:
			return fmt.Sprintf("%d orders in the ledger, and the run placed %d", a.Orders, n)
		case a.TooMany() != 0 || a.NotCharged() != 0:
			return fmt.Sprintf("%d charges for %d orders, of which %d were charged", a.Charges, n, a.Charged)
		case a.Payments != n:
			return fmt.Sprintf("%d payments stored for %d orders", a.Payments, n)
		case a.Taken != p.Want:
			return fmt.Sprintf("%d taken for orders of %d, in minor units", a.Taken, p.Want)
		}
	}
	return ""
}

// visit is one shopper at one door.
type visit struct {
	order
	door    payments.Door
	part    int // of the report
	newKeys bool
	slots   chan struct{}
}

// shop sends the order until there is an answer that settles it, or ctx ends.
func (c *Crowd) shop(ctx context.Context, v visit) {
	settled := false
	for n := 0; !settled && ctx.Err() == nil; n++ {
		select {
		case v.slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		got := c.send(ctx, v, n)
		<-v.slots
		c.update(func(r *Report) {
			p := &r.Doors[v.part]
			p.Sends++
			if got.Status == 0 {
				p.Silent++
			}
			if got.Replayed {
				p.Replayed++
			}
		})
		if settled = payments.Settles(got.Status); !settled {
			payments.Pause(ctx, max(got.RetryAfter, MinPause+time.Duration(v.rng.Int64N(int64(MaxPause-MinPause)))))
		}
	}
	c.update(func(r *Report) {
		r.Done++
		if !settled {
			r.Doors[v.part].Open++
		}
	})
}

// send makes the n-th request for an order, the first with its fault. The
// answer is empty if there was none.
func (c *Crowd) send(ctx context.Context, v visit, n int) client.Answer {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	p := client.Payment{
		Door: v.door, Customer: payments.Crowd, Order: v.name,
		// A request without a fault of its own says so: what a reader arms is not
		// for the crowd.
		Fault: payments.NoFaultName,
		Body:  payments.Marshal(payments.Order{Amount: v.price, Currency: "USD", RecipientID: "r_123"}),
	}
	if n == 0 {
		p.Fault = payments.FaultName(v.fault)
	}
	if v.door != payments.Keyless {
		p.Key = v.name
	}
	if v.door != payments.Keyless && v.newKeys {
		p.Key += "-" + strconv.Itoa(n)
	}
	got, err := c.demo.Pay(ctx, p)
	if err != nil {
		return client.Answer{}
	}
	return got
}
