// Package client reaches the reference system from outside, at its one public
// address, as the shop's page, a shopper of the crowd and a script do.
//
// It sends a payment once and never again by itself: a connection carries one
// request, since net/http resends on one that it has used before (R20), and
// whoever sends again here does so on purpose.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

const (
	// maxAnswer is the longest answer that is read, in bytes.
	maxAnswer = 1 << 20
	// askWithin bounds a question to /demo/, in which no fault takes part. It is
	// longer than the front waits for a process that is being started.
	askWithin = 10 * time.Second
	// reads is how often something is read that gets no answer: the process
	// behind may be dying just then, and reading changes nothing.
	reads = 3
)

// Client is a way to one running demo.
type Client struct {
	base string
	http *http.Client
}

// New returns a way to the demo at base, "http://HOST:PORT". It calls nobody.
func New(base string) *Client {
	return &Client{
		base: strings.TrimSuffix(base, "/"),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// Payment is one payment request. What is empty is not sent.
type Payment struct {
	Door     payments.Door
	Customer string
	Order    string // its name in the ledger
	Key      string
	// Fault is the fault that it meets, as payments.FaultName calls it. Without
	// it the request meets what is armed.
	Fault string
	Body  []byte // JSON
}

// Answer is what came back, whole.
type Answer struct {
	Status   int
	Outcome  string // the header Semel-Outcome
	Replayed bool
	// RetryAfter is how long to wait before the next request, or zero.
	RetryAfter time.Duration
	Body       []byte
}

// Pay sends one payment request. An error means that no whole answer came
// before ctx ended, which says nothing about the charge.
func (c *Client) Pay(ctx context.Context, p Payment) (Answer, error) {
	h := http.Header{}
	for name, value := range map[string]string{
		payments.HeaderCustomer: p.Customer,
		payments.HeaderOrder:    p.Order,
		payments.HeaderFault:    p.Fault,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if p.Key != "" {
		h.Set(payments.HeaderKey, `"`+p.Key+`"`)
	}
	return c.send(ctx, http.MethodPost, p.Door.Path(), h, p.Body)
}

// RefusedError is an answer other than 2xx to a question.
type RefusedError struct {
	Status int
	// Detail is why, in the demo's words, if it said so.
	Detail   string
	question string
}

// Error says what was asked and how it was answered.
func (r *RefusedError) Error() string {
	text := fmt.Sprintf("%s was answered with %d", r.question, r.Status)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// Ask sends a question to the demo itself, with in as JSON unless it is nil, and
// decodes the JSON that comes back into out, unless that is nil. The error is a
// *RefusedError where there was an answer other than 2xx.
func (c *Client) Ask(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var body []byte
	if in != nil {
		body = payments.Marshal(in)
	}
	got, err := c.send(ctx, method, path, http.Header{}, body)
	for n := 1; err != nil && method == http.MethodGet && n < reads && ctx.Err() == nil; n++ {
		got, err = c.send(ctx, method, path, http.Header{}, body)
	}
	if err != nil {
		return err
	}
	if got.Status < 200 || got.Status > 299 {
		var problem payments.Problem
		_ = json.Unmarshal(got.Body, &problem) // what is no problem says no more than its status
		return &RefusedError{Status: got.Status, Detail: problem.Detail, question: method + " " + path}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Ledger reads the accounts of everybody, or those of the crowd.
func (c *Client) Ledger(ctx context.Context, customer string) (payments.Ledger, error) {
	path := "/demo/ledger"
	if customer == payments.Crowd {
		path = "/demo/crowd/ledger"
	}
	var l payments.Ledger
	err := c.Ask(ctx, http.MethodGet, path, nil, &l)
	return l, err
}

// send makes one request, with body as JSON if there is one, and returns the
// whole answer, or an error if it did not come whole.
func (c *Client) send(ctx context.Context, method, path string, h http.Header, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header = h
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return Answer{}, err
	}
	if len(said) > maxAnswer {
		return Answer{}, fmt.Errorf("the answer is over %d bytes", maxAnswer)
	}
	a := Answer{
		Status:   resp.StatusCode,
		Outcome:  resp.Header.Get("Semel-Outcome"),
		Replayed: resp.Header.Get("Idempotent-Replayed") == "true",
		Body:     said,
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a, nil
}
