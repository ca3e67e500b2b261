// Package payer is a customer's program: it pays for one order with
// [semelclient], and finishes first what an earlier run of it left open. It may
// be told to die while it waits, so that there is something left.
package payer

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/semelclient"
)

// Config says what is paid. All fields but Folder and Dies are required.
type Config struct {
	URL string // where orders are sent
	// Folder is where intents are kept. Without one they are in memory, and
	// gone with the process.
	Folder string
	// Order names the order in the ledger, whatever its key.
	Order string
	// Key is for the intent, if one has to be made.
	Key string
	// Body is the order, as JSON.
	Body string
	// Dies has the process killed as soon as an answer arrives, before a byte
	// of it is read.
	Dies bool
}

// The events that Run tells.
const (
	Sends  = "sends"  // a request is about to leave
	Ended  = "ended"  // with an answer or without
	Result = "result" // what is known of the order at the end
)

// Told is one event, a line of JSON each.
type Told struct {
	Event string `json:"event"`
	// Key is the key that is sent, and Found says that the intent was there
	// already. Both come with Sends.
	Key   string `json:"key,omitempty"`
	Found bool   `json:"found,omitempty"`
	// Status is that of the answer, or zero.
	Status   int  `json:"status,omitempty"`
	Replayed bool `json:"replayed,omitempty"`
	// Outcome and Body come with Result.
	Outcome string `json:"outcome,omitempty"`
	Body    []byte `json:"body,omitempty"`
}

// patience bounds a call of the client: what is waited for it is no more.
const patience = 10 * time.Second

// Run pays, and tells stdout what it does.
func Run(ctx context.Context, cfg Config, stdout io.Writer) error {
	p := &payer{cfg: cfg, out: json.NewEncoder(stdout)}
	var store semelclient.IntentStore = new(semelclient.MemoryStore)
	if cfg.Folder != "" {
		files, err := semelclient.OpenFileStore(cfg.Folder)
		if err != nil {
			return err
		}
		defer files.Close()
		store = files
	}
	client, err := semelclient.New(store, semelclient.Config{
		// Each request has a connection of its own, so that it is seen who
		// sends again.
		Transport: p.watched(&http.Transport{DisableKeepAlives: true}),
		Deadline:  patience, ObserveFunc: p.observe,
	})
	if err != nil {
		return err
	}
	return p.pay(ctx, client)
}

type payer struct {
	cfg   Config
	out   *json.Encoder
	found bool // the intent was there before this process
}

// pay is what every program with a client does: what was left open first.
func (p *payer) pay(ctx context.Context, client *semelclient.Client) error {
	p.found = true
	left := 0
	err := client.Recover(ctx, func(r semelclient.Result) error {
		left++
		p.result(r)
		return nil
	})
	if err != nil || left > 0 {
		return err
	}
	p.found = false
	header := http.Header{
		"Content-Type":       {"application/json"},
		payments.HeaderOrder: {p.cfg.Order},
		payments.HeaderKey:   {`"` + p.cfg.Key + `"`},
	}
	intent, err := client.Intend(ctx, http.MethodPost, p.cfg.URL, header, []byte(p.cfg.Body))
	if err != nil {
		return err
	}
	r := client.Do(ctx, intent)
	p.result(r)
	if !r.Settled() {
		return nil
	}
	return client.Forget(ctx, intent.Key)
}

func (p *payer) tell(t Told) {
	p.out.Encode(t) //nolint:errcheck,errchkjson // a reader that has left cannot be told so.
}

func (p *payer) observe(a semelclient.Attempt) {
	p.tell(Told{Event: Ended, Status: a.Status, Replayed: a.Replayed})
}

func (p *payer) result(r semelclient.Result) {
	p.tell(Told{Event: Result, Status: r.Status, Replayed: r.Replayed, Outcome: r.Outcome.String(), Body: r.Body})
}

// watched is next, telling what is sent, and dying when an answer arrives if
// that is asked for.
func (p *payer) watched(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			p.tell(Told{Event: Sends, Key: req.Header.Get(payments.HeaderKey), Found: p.found})
		}
		if p.cfg.Dies {
			trace := &httptrace.ClientTrace{GotFirstResponseByte: payments.Die}
			req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
		}
		return next.RoundTrip(req)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
