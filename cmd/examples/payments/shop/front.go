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

// armed is the fault that is switched on, and for how many requests yet.
type armed struct {
	Fault payments.Fault `json:"fault"`
	Times int            `json:"times"`
}

// answer is what came back for one payment request. A request without an
// answer has none; see [front.pay].
type answer struct {
	Status   int
	Outcome  string
	Replayed bool
	Body     []byte
}

// front reaches the demo's front at its public address.
type front struct {
	base   *url.URL
	client *http.Client
	within time.Duration
}

// newFront returns a way to the front. Its connections carry one request each:
// net/http sends a request with an idempotency key again by itself when a kept
// connection dies (R20), and the page has to show every request there was.
func newFront(base *url.URL, within time.Duration) *front {
	return &front{
		base:   base,
		within: within,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// pay sends one payment request. An error means that no whole answer came
// within the time allowed, which says nothing about the charge.
func (f *front) pay(ctx context.Context, door payments.Door, in intent, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	req, err := f.request(ctx, http.MethodPost, door.Path(), []byte(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set(payments.HeaderOrder, in.Order)
	if in.Key != "" {
		req.Header.Set(payments.HeaderKey, `"`+in.Key+`"`)
	}
	return f.send(req)
}

// arm asks for a fault on the next payment requests, whoever sends them.
func (f *front) arm(ctx context.Context, a armed) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return f.ask(ctx, http.MethodPost, "/demo/faults", body, nil)
}

// armed asks which fault is switched on.
func (f *front) armed(ctx context.Context) (armed, error) {
	var state struct {
		Armed armed `json:"armed"`
	}
	err := f.ask(ctx, http.MethodGet, "/demo/faults", nil, &state)
	return state.Armed, err
}

// ledger reads the accounts.
func (f *front) ledger(ctx context.Context) (payments.Ledger, error) {
	var l payments.Ledger
	err := f.ask(ctx, http.MethodGet, "/demo/ledger", nil, &l)
	return l, err
}

// log reads the recent requests, oldest first.
func (f *front) log(ctx context.Context) ([]request, error) {
	var rs []request
	err := f.ask(ctx, http.MethodGet, "/demo/log", nil, &rs)
	return rs, err
}

// lease reads how long a claim of the service holds.
func (f *front) lease(ctx context.Context) (string, error) {
	var state struct {
		Lease string `json:"lease"`
	}
	err := f.ask(ctx, http.MethodGet, "/demo/service", nil, &state)
	return state.Lease, err
}

// remembers reads whether the bank looks at keys.
func (f *front) remembers(ctx context.Context) (bool, error) {
	var state struct {
		Dedupe bool `json:"dedupe"`
	}
	err := f.ask(ctx, http.MethodGet, "/demo/bank", nil, &state)
	return state.Dedupe, err
}

// apply sets the processes behind.
func (f *front) apply(ctx context.Context, c choices) error {
	service := payments.Marshal(map[string]string{"lease": c.Lease})
	bank := payments.Marshal(map[string]bool{"dedupe": c.Bank == remembers})
	return errors.Join(
		f.ask(ctx, http.MethodPut, "/demo/service", service, nil),
		f.ask(ctx, http.MethodPut, "/demo/bank", bank, nil),
	)
}

// run lets the crowd shop.
func (f *front) run(ctx context.Context, s crowd.Settings) error {
	return f.ask(ctx, http.MethodPost, "/demo/crowd", payments.Marshal(s), nil)
}

// crowd reads what came of the latest run.
func (f *front) crowd(ctx context.Context) (crowd.Report, error) {
	var r crowd.Report
	err := f.ask(ctx, http.MethodGet, "/demo/crowd", nil, &r)
	return r, err
}

// ask sends a request to /demo/ and decodes the JSON that comes back into out,
// unless out is nil.
func (f *front) ask(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	got, err := f.try(ctx, method, path, body)
	for n := 1; err != nil && method == http.MethodGet && n < readTries && ctx.Err() == nil; n++ {
		got, err = f.try(ctx, method, path, body)
	}
	if err != nil {
		return err
	}
	if got.Status < 200 || got.Status > 299 {
		return fmt.Errorf("%s %s was answered with %d", method, path, got.Status)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// try asks once.
func (f *front) try(ctx context.Context, method, path string, body []byte) (answer, error) {
	req, err := f.request(ctx, method, path, body)
	if err != nil {
		return answer{}, err
	}
	return f.send(req)
}

// request builds a request to the front, with body as JSON if there is one.
func (f *front) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, f.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// send returns the whole answer, or an error if it did not come whole.
func (f *front) send(req *http.Request) (answer, error) {
	resp, err := f.client.Do(req) //nolint:gosec // G704: the address is the demo's own, and the paths are this file's
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
