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
)

const (
	// amount is the price of every order, in minor units.
	amount = 2500
	// orderHeader carries the order, so that the ledger can count intents
	// also where there is no key.
	orderHeader = "X-Order-Id"
	// answerLimit bounds what is read of an answer, in bytes.
	answerLimit = 1 << 20
	// askWithin bounds a question to /demo/, in which no fault takes part.
	askWithin = 5 * time.Second
)

// payment is the body of every payment request.
var payment = fmt.Sprintf(`{"amount":%d,"currency":"USD","recipientId":"r_123"}`, amount)

// Ledger is the answer of GET /demo/ledger: one account for each way to pay.
type Ledger struct {
	Keyed   Account `json:"keyed"`
	Keyless Account `json:"keyless"`
	Naive   Account `json:"naive"`
}

// Account counts what happened at one till. The bank's figures are the truth;
// nobody else's are.
type Account struct {
	// Orders is the number of distinct intents.
	Orders int64 `json:"orders"`
	// Payments is the number of rows the payment service wrote.
	Payments int64 `json:"payments"`
	// Charges is how often the bank took money.
	Charges int64 `json:"charges"`
	// Taken is the money the bank took, in minor units.
	Taken int64 `json:"taken"`
}

// Request is one entry of GET /demo/log: a request as the front saw it, with
// what the payment service logged about it.
type Request struct {
	Time    time.Time `json:"time"`
	Door    string    `json:"door"`
	Key     string    `json:"key"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Status  int       `json:"status"`
	Outcome string    `json:"outcome"`
	Lines   []string  `json:"lines"`
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
		client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// pay sends one payment request. An error means that no whole answer came
// within the time allowed, which says nothing about the charge.
func (f *front) pay(ctx context.Context, door, key, order string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	req, err := f.request(ctx, http.MethodPost, door, []byte(payment))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set(orderHeader, order)
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	return f.send(req)
}

// arm asks for a fault on the next payment requests, whoever sends them.
func (f *front) arm(ctx context.Context, fault string, times int) error {
	body, err := json.Marshal(map[string]any{"fault": fault, "times": times})
	if err != nil {
		return err
	}
	return f.ask(ctx, http.MethodPost, "/demo/faults", body, nil)
}

// ledger reads the accounts.
func (f *front) ledger(ctx context.Context) (Ledger, error) {
	var l Ledger
	return l, f.ask(ctx, http.MethodGet, "/demo/ledger", nil, &l)
}

// log reads the recent requests, oldest first.
func (f *front) log(ctx context.Context) ([]Request, error) {
	var rs []Request
	return rs, f.ask(ctx, http.MethodGet, "/demo/log", nil, &rs)
}

// ask sends a request to /demo/ and decodes the JSON that comes back into out,
// unless out is nil.
func (f *front) ask(ctx context.Context, method, path string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := f.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	got, err := f.send(req)
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
	resp, err := f.client.Do(req)
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
