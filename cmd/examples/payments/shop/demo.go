package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

const (
	// amount is the price of every order, in minor units.
	amount = 2500
	// otherAmount is the price that a repeat asks for when it is to differ.
	otherAmount = 2600
)

// payment is the body of a payment request, and otherPayment the one that a
// reader may send under the same key to see it refused.
var (
	payment      = paymentOf(amount)
	otherPayment = paymentOf(otherAmount)
)

func paymentOf(n int64) string {
	return fmt.Sprintf(`{"amount":%d,"currency":"USD","recipientId":"r_123"}`, n)
}

// demo is the demo behind the page, at its public address.
type demo struct {
	*client.Client
	// within is how long a till waits for an answer.
	within time.Duration
}

// pay sends one payment request, which meets that fault and none that somebody
// else has armed. An error means that no whole answer came within the time
// allowed, which says nothing about the charge.
func (d demo) pay(ctx context.Context, door payments.Door, in intent, body string, met payments.Fault) (client.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	return d.Pay(ctx, client.Payment{
		Door: door, Order: in.Order, Key: in.Key, Fault: payments.FaultName(met), Body: []byte(body),
	})
}

// ledger reads the accounts.
func (d demo) ledger(ctx context.Context) (payments.Ledger, error) {
	return d.Ledger(ctx, payments.Anonymous)
}

// log reads the recent requests, oldest first.
func (d demo) log(ctx context.Context) ([]front.Entry, error) {
	var log []front.Entry
	err := d.Ask(ctx, http.MethodGet, "/demo/log", nil, &log)
	return log, err
}

// settings reads how the processes behind are set.
func (d demo) settings(ctx context.Context) (settings, error) {
	var service struct {
		Lease string `json:"lease"`
	}
	var bank struct {
		Dedupe bool `json:"dedupe"`
	}
	err := errors.Join(
		d.Ask(ctx, http.MethodGet, "/demo/service", nil, &service),
		d.Ask(ctx, http.MethodGet, "/demo/bank", nil, &bank),
	)
	if err != nil {
		return settings{}, err
	}
	set := settings{Lease: service.Lease, Bank: forgets}
	if bank.Dedupe {
		set.Bank = remembers
	}
	return set, nil
}

// apply sets the processes behind, as far as set says what they are to be.
func (d demo) apply(ctx context.Context, set settings) error {
	var lease, bank error
	if set.Lease != "" {
		lease = d.Ask(ctx, http.MethodPut, "/demo/service", map[string]string{"lease": set.Lease}, nil)
	}
	if set.Bank != "" {
		bank = d.Ask(ctx, http.MethodPut, "/demo/bank", map[string]bool{"dedupe": set.Bank == remembers}, nil)
	}
	return errors.Join(lease, bank)
}

// run lets the crowd shop, under those settings unless a run is under way: that
// one is to end as it began, and the refusal says so.
func (d demo) run(ctx context.Context, s crowd.Settings, set settings) error {
	report, err := d.crowd(ctx)
	if err == nil && !report.Running {
		err = d.apply(ctx, set)
	}
	if err != nil {
		return err
	}
	return d.Ask(ctx, http.MethodPost, "/demo/crowd", s, nil)
}

// crowd reads what came of the latest run.
func (d demo) crowd(ctx context.Context) (crowd.Report, error) {
	var r crowd.Report
	err := d.Ask(ctx, http.MethodGet, "/demo/crowd", nil, &r)
	return r, err
}
