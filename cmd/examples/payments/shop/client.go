package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
)

const (
	// amount is the price of every order, in minor units.
	amount = 2500
	// otherAmount is the price that a repeat asks for when it is to differ.
	otherAmount = 2600
	// answerLimit bounds what is read of an answer, in bytes.
	answerLimit = 1 << 20
	// askWithin bounds a question to /demo/, in which no fault takes part.
	askWithin = 5 * time.Second
	// readTries is how often something is read that gets no answer: the
	// process behind may be dying just then, and reading changes nothing.
	readTries = 3
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

// request is one entry of GET /demo/log: a request as the front saw it, with
// what the processes behind it logged.
type request struct {
	Time    time.Time      `json:"time"`
	Door    payments.Door  `json:"door"`
	Order   string         `json:"order"`
	Key     string         `json:"key"`
	Method  string         `json:"method"`
	Path    string         `json:"path"`
	Fault   payments.Fault `json:"fault"`
	Status  int            `json:"status"`
	Outcome string         `json:"outcome"`
	Ended   bool           `json:"ended"`
	Lines   []string       `json:"lines"`
}

// answer is what came back for one payment request. A request without an
// answer has none; see [client.pay].
type answer struct {
	Status   int
	Outcome  string
	Replayed bool
	Body     []byte
}

// client reaches the demo's front at its public address.
type client struct {
	base   *url.URL
	http   *http.Client
	within time.Duration
}

// newClient returns a way to the front. Its connections carry one request each:
// net/http sends a request with an idempotency key again by itself when a kept
// connection dies (R20), and the page has to show every request there was.
func newClient(base *url.URL, within time.Duration) *client {
	return &client{
		base:   base,
		within: within,
		http:   &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// pay sends one payment request, which meets that fault and none that somebody
// else has armed. An error means that no whole answer came within the time
// allowed, which says nothing about the charge.
func (c *client) pay(ctx context.Context, door payments.Door, in intent, body string, met payments.Fault) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	req, err := c.request(ctx, http.MethodPost, door.Path(), []byte(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set(payments.HeaderOrder, in.Order)
	req.Header.Set(payments.HeaderFault, payments.FaultName(met))
	if in.Key != "" {
		req.Header.Set(payments.HeaderKey, `"`+in.Key+`"`)
	}
	return c.send(req)
}

// ledger reads the accounts.
func (c *client) ledger(ctx context.Context) (payments.Ledger, error) {
	var l payments.Ledger
	err := c.ask(ctx, http.MethodGet, "/demo/ledger", nil, &l)
	return l, err
}

// log reads the recent requests, oldest first.
func (c *client) log(ctx context.Context) ([]request, error) {
	var rs []request
	err := c.ask(ctx, http.MethodGet, "/demo/log", nil, &rs)
	return rs, err
}

// settings reads how the processes behind are set.
func (c *client) settings(ctx context.Context) (settings, error) {
	var service struct {
		Lease string `json:"lease"`
	}
	var bank struct {
		Dedupe bool `json:"dedupe"`
	}
	err := errors.Join(
		c.ask(ctx, http.MethodGet, "/demo/service", nil, &service),
		c.ask(ctx, http.MethodGet, "/demo/bank", nil, &bank),
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
func (c *client) apply(ctx context.Context, set settings) error {
	var lease, bank error
	if set.Lease != "" {
		lease = c.ask(ctx, http.MethodPut, "/demo/service", payments.Marshal(map[string]string{"lease": set.Lease}), nil)
	}
	if set.Bank != "" {
		bank = c.ask(ctx, http.MethodPut, "/demo/bank", payments.Marshal(map[string]bool{"dedupe": set.Bank == remembers}), nil)
	}
	return errors.Join(lease, bank)
}

// run lets the crowd shop, under those settings unless a run is under way: that
// one is to end as it began, and the refusal says so.
func (c *client) run(ctx context.Context, s crowd.Settings, set settings) error {
	report, err := c.crowd(ctx)
	if err == nil && !report.Running {
		err = c.apply(ctx, set)
	}
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, "/demo/crowd", payments.Marshal(s), nil)
}

// crowd reads what came of the latest run.
func (c *client) crowd(ctx context.Context) (crowd.Report, error) {
	var r crowd.Report
	err := c.ask(ctx, http.MethodGet, "/demo/crowd", nil, &r)
	return r, err
}

// ask sends a request to /demo/ and decodes the JSON that comes back into out,
// unless out is nil.
func (c *client) ask(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	got, err := c.try(ctx, method, path, body)
	for n := 1; err != nil && method == http.MethodGet && n < readTries && ctx.Err() == nil; n++ {
		got, err = c.try(ctx, method, path, body)
	}
	if err != nil {
		return err
	}
	if got.Status < 200 || got.Status > 299 {
		return refused(method, path, got)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// conflict is a question that the demo cannot take now, in the demo's words.
type conflict struct{ detail string }

// Error says why.
func (c conflict) Error() string { return c.detail }

// refused is why the demo did not do what it was asked.
func refused(method, path string, got answer) error {
	var problem payments.Problem
	if got.Status == http.StatusConflict && json.Unmarshal(got.Body, &problem) == nil && problem.Detail != "" {
		return conflict{problem.Detail}
	}
	return fmt.Errorf("%s %s was answered with %d", method, path, got.Status)
}

// try asks once.
func (c *client) try(ctx context.Context, method, path string, body []byte) (answer, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return answer{}, err
	}
	return c.send(req)
}

// request builds a request to the front, with body as JSON if there is one.
func (c *client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// send returns the whole answer, or an error if it did not come whole.
func (c *client) send(req *http.Request) (answer, error) {
	resp, err := c.http.Do(req) //nolint:gosec // G704: the address is the demo's own, and the paths are this file's
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return answer{}, err
	}
	if len(body) > answerLimit {
		return answer{}, errors.New("the answer is over 1 MiB")
	}
	return answer{
		Status:   resp.StatusCode,
		Outcome:  resp.Header.Get("Semel-Outcome"),
		Replayed: resp.Header.Get("Idempotent-Replayed") == "true",
		Body:     body,
	}, nil
}
