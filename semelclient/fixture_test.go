package semelclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// seen is one request as it arrived.
type seen struct {
	at     time.Time
	method string
	path   string
	host   string
	key    []string
	header http.Header
	body   string
}

// service is a transport that plays the service: each request is answered by the
// next of its answers, the last one again and again.
type service struct {
	mu      sync.Mutex
	answers []answer
	seen    []seen
	rules   answer // of the well-known document
	asked   int    // how often for that
}

type answer func(req *http.Request) (*http.Response, error)

func playing(answers ...answer) *service {
	return &service{answers: answers, rules: status(http.StatusNotFound)}
}

// RoundTrip implements http.RoundTripper.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	s.mu.Lock()
	var next answer
	if req.URL.Path == "/.well-known/idempotency" {
		s.asked++
		next = s.rules
	} else {
		s.seen = append(s.seen, seen{
			time.Now(), req.Method, req.URL.Path, req.URL.Host, req.Header["Idempotency-Key"], req.Header.Clone(), string(body),
		})
		next = s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
	}
	s.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return next(req)
}

func (s *service) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.seen...)
}

// status answers with a status, and headers in pairs; the header "body" is the
// body.
func status(code int, headers ...string) answer {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
		body := "status " + strconv.Itoa(code)
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == "body" {
				body = headers[i+1]
				continue
			}
			h.Add(headers[i], headers[i+1])
		}
		return &http.Response{
			StatusCode: code, Status: strconv.Itoa(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: h, Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
		}, nil
	}
}

// problem answers as Semel does.
func problem(code int, outcome, name string, retry bool, headers ...string) answer {
	body := `{"type":"t","title":"T","status":` + strconv.Itoa(code) + `,"code":"` + name + `","retry":` + strconv.FormatBool(retry) + `}`
	return status(code, append(headers, "Content-Type", "application/problem+json", "Semel-Outcome", outcome, "body", body)...)
}

// quiet drops what a server under test logs.
var quiet = log.New(io.Discard, "", 0)

var errLost = errors.New("connection reset by peer")

// lost takes the request and gives no answer.
func lost(*http.Request) (*http.Response, error) { return nil, errLost }

// silent takes the request and says nothing until the attempt is given up.
func silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

const (
	target  = "https://bank.test/payments"
	payment = `{"amount":1900,"currency":"EUR"}`
)

func newClient(t *testing.T, transport http.RoundTripper, change ...func(*semelclient.Config)) (*semelclient.Client, *semelclient.MemoryStore) {
	t.Helper()
	store := new(semelclient.MemoryStore)
	return clientOn(t, store, transport, change...), store
}

func clientOn(t *testing.T, store semelclient.IntentStore, transport http.RoundTripper, change ...func(*semelclient.Config)) *semelclient.Client {
	t.Helper()
	cfg := semelclient.Config{Transport: transport}
	for _, f := range change {
		f(&cfg)
	}
	client, err := semelclient.New(store, cfg)
	assert.NoError(t, err)
	return client
}

func intend(t *testing.T, c *semelclient.Client) semelclient.Intent {
	t.Helper()
	in, err := c.Intend(context.Background(), http.MethodPost, target, http.Header{"Content-Type": {"application/json"}}, []byte(payment))
	assert.NoError(t, err)
	return in
}

// pay makes an intent and does it.
func pay(t *testing.T, c *semelclient.Client) semelclient.Result {
	t.Helper()
	return c.Do(context.Background(), intend(t, c))
}

// stored returns how many intents a store has.
func stored(t *testing.T, store semelclient.IntentStore) int {
	t.Helper()
	n := 0
	for _, err := range store.Keys(context.Background()) {
		assert.NoError(t, err)
		n++
	}
	return n
}

func same(t *testing.T, requests []seen) {
	t.Helper()
	for i, r := range requests {
		assert.Equal(t, len(r.key), 1, "lines of the key of request %d", i)
		assert.Equal(t, r.key[0], requests[0].key[0], "key of request %d", i)
		assert.Equal(t, r.body, requests[0].body, "body of request %d", i)
		assert.Equal(t, r.method+r.path, requests[0].method+requests[0].path, "target of request %d", i)
	}
}

// failing is a store that fails where it is told to.
type failing struct {
	semelclient.MemoryStore

	add, settle bool
}

var errDisk = errors.New("the disk is full")

func (f *failing) Add(ctx context.Context, in semelclient.Intent, d time.Duration) (semelclient.Hold, error) {
	if f.add {
		return semelclient.Hold{}, errDisk
	}
	return f.MemoryStore.Add(ctx, in, d)
}

func (f *failing) Settle(ctx context.Context, h semelclient.Hold, s semelclient.Settlement) error {
	if f.settle {
		return errDisk
	}
	return f.MemoryStore.Settle(ctx, h, s)
}
