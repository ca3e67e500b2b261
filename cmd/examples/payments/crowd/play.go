package crowd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// play lets everybody shop, waits for what is still on its way, and counts.
func (c *Crowd) play(ctx context.Context, s Settings) {
	before, err := c.ledger(ctx)
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
	after, err := c.ledger(ctx)
	if err != nil {
		c.fail(err)
		return
	}
	c.update(func(r *Report) {
		for i, p := range r.Doors {
			grown := after[p.Door].Minus(before[p.Door])
			r.Doors[i].Ledger = &grown
		}
		r.judge()
		r.Seconds = time.Since(c.began).Seconds()
		r.Running = false
	})
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
		said := c.send(ctx, v, n)
		<-v.slots
		c.update(func(r *Report) {
			p := &r.Doors[v.part]
			p.Sends++
			if said.status == 0 {
				p.Silent++
			}
			if said.replayed {
				p.Replayed++
			}
		})
		if settled = payments.Settles(said.status); !settled {
			payments.Pause(ctx, max(said.wait, MinPause+time.Duration(v.rng.Int64N(int64(MaxPause-MinPause)))))
		}
	}
	c.update(func(r *Report) {
		r.Done++
		if !settled {
			r.Doors[v.part].Open++
		}
	})
}

// said is what an answer says; without one its status is zero.
type said struct {
	status   int
	replayed bool
	wait     time.Duration
}

// send makes the n-th request for an order, the first with its fault.
func (c *Crowd) send(ctx context.Context, v visit, n int) said {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	body := payments.Marshal(payments.Order{Amount: v.price, Currency: "USD", RecipientID: "r_123"})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+v.door.Path(), bytes.NewReader(body))
	if err != nil {
		return said{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(payments.HeaderCustomer, payments.Crowd)
	req.Header.Set(payments.HeaderOrder, v.name)
	if v.door != payments.Keyless {
		key := v.name
		if v.newKeys {
			key += "-" + strconv.Itoa(n)
		}
		req.Header.Set(payments.HeaderKey, `"`+key+`"`)
	}
	// A request without a fault of its own says so: what a reader arms is not
	// for the crowd.
	fault := payments.NoFault
	if n == 0 {
		fault = v.fault
	}
	req.Header.Set(payments.HeaderFault, payments.FaultName(fault))
	resp, err := c.client.Do(req)
	if err != nil {
		return said{}
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return said{}
	}
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		wait = 0
	}
	return said{
		status:   resp.StatusCode,
		replayed: resp.Header.Get("Idempotent-Replayed") == "true",
		wait:     time.Duration(wait) * time.Second,
	}
}

// ledger reads the crowd's accounts.
func (c *Crowd) ledger(ctx context.Context) (payments.Ledger, error) {
	var l payments.Ledger
	err := c.get(ctx, "/demo/crowd/ledger", &l)
	return l, err
}

// get reads what the demo has at path.
func (c *Crowd) get(ctx context.Context, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s was answered with %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
