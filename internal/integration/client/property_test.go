package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelclient/retry"
)

const (
	payment = `{"amount":1900}`
	// keeps is how long the model keeps a key, and late how long a request may be
	// on its way.
	keeps = 24 * time.Hour
	late  = 9 * time.Minute
)

// model is a service that honours keys, behind a network and gateways that do
// what they like. It knows the truth.
type model struct {
	rt *rapid.T

	mu       sync.Mutex
	bodies   map[string]bool
	requests int
	ended    time.Time // when the key's request ended; zero if it has not
	status   int       // with what
	effects  int
	told     bool // the intent is told to be not applied: nothing may come any more
}

// arrive is what the service does with a request: the first decides, and the rest
// is told the same, as long as the key is kept.
func (m *model) arrive(declines bool) (status int, replay bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended.IsZero() && time.Since(m.ended) < keeps {
		return m.status, true
	}
	m.ended, m.status = time.Now(), http.StatusCreated
	if declines {
		m.status = http.StatusPaymentRequired
	} else {
		m.effects++
	}
	return m.status, false
}

var errLost = errors.New("the connection is lost")

// RoundTrip implements http.RoundTripper: what happens to a request is drawn.
func (m *model) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/payments" && req.URL.Path != "/moved" {
		return answer(http.StatusNotFound), nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.requests++
	m.bodies[req.Header.Get("Idempotency-Key")+string(body)] = true
	if m.told {
		m.rt.Errorf("got a request after the intent was told to be not applied")
	}
	m.mu.Unlock()
	time.Sleep(time.Duration(rapid.IntRange(0, 2000).Draw(m.rt, "ms")) * time.Millisecond)
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	fate := rapid.SampledFrom(fates).Draw(m.rt, "fate")
	return fates[fate.n].f(m)
}

type fate struct {
	n    int
	name string
	f    func(m *model) (*http.Response, error)
}

// String names a fate in what rapid prints.
func (f fate) String() string { return f.name }

var fates = numbered([]fate{
	{name: "applied", f: func(m *model) (*http.Response, error) { return m.reply(false, true), nil }},
	{name: "applied, by a service that marks nothing", f: func(m *model) (*http.Response, error) { return m.reply(false, false), nil }},
	{name: "declined", f: func(m *model) (*http.Response, error) { return m.reply(true, true), nil }},
	{name: "lost on the way", f: func(*model) (*http.Response, error) { return nil, errLost }},
	{name: "applied, reply lost", f: func(m *model) (*http.Response, error) {
		m.arrive(false)
		return nil, errLost
	}},
	{name: "declined, reply lost", f: func(m *model) (*http.Response, error) {
		m.arrive(true)
		return nil, errLost
	}},
	{name: "arrives late", f: func(m *model) (*http.Response, error) {
		d := time.Duration(rapid.IntRange(1, int(late/time.Second)).Draw(m.rt, "late")) * time.Second
		time.AfterFunc(d, func() { m.arrive(false) })
		return nil, errLost
	}},
	{name: "applied, 502 of a gateway", f: func(m *model) (*http.Response, error) {
		m.arrive(false)
		return answer(http.StatusBadGateway), nil
	}},
	{name: "503 of a gateway", f: gate(http.StatusServiceUnavailable)},
	{name: "503, Retry-After", f: gate(http.StatusServiceUnavailable, "Retry-After", "7")},
	{name: "503, released", f: gate(http.StatusServiceUnavailable, "Semel-Outcome", "released")},
	{name: "429", f: gate(http.StatusTooManyRequests, "Retry-After", "3")},
	{name: "403 of a gateway", f: gate(http.StatusForbidden)},
	{name: "400 of a gateway", f: gate(http.StatusBadRequest)},
	{name: "401", f: gate(http.StatusUnauthorized)},
	{name: "409 in-progress", f: gate(http.StatusConflict, "Semel-Outcome", "in-progress", "Retry-After", "1")},
	{name: "409 outcome-unknown", f: gate(http.StatusConflict, "Semel-Outcome", "unknown", "Retry-After", "300")},
	{name: "422 key-reused", f: gate(http.StatusUnprocessableEntity, "Semel-Outcome", "key-reused")},
	{name: "moved", f: gate(http.StatusTemporaryRedirect, "Location", "/moved")},
	{name: "moved elsewhere", f: gate(http.StatusTemporaryRedirect, "Location", "http://evil.test/")},
	{name: "login page", f: gate(http.StatusFound, "Location", "/login")},
})

func numbered(list []fate) []fate {
	for i := range list {
		list[i].n = i
	}
	return list
}

// gate answers without asking the service.
func gate(status int, headers ...string) func(*model) (*http.Response, error) {
	return func(*model) (*http.Response, error) { return answer(status, headers...), nil }
}

// reply is the service's own. Without marks it is one that says nothing of keys.
func (m *model) reply(declines, marks bool) *http.Response {
	status, replay := m.arrive(declines)
	switch {
	case !marks:
		return answer(status)
	case replay:
		return answer(status, "Semel-Outcome", "replayed", "Idempotent-Replayed", "true")
	}
	return answer(status, "Semel-Outcome", "executed")
}

func answer(status int, headers ...string) *http.Response {
	h := http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(nil)),
	}
}

// ask tells the truth of this moment.
func (m *model) ask(context.Context, semelclient.Intent) (semelclient.Outcome, error) {
	if rapid.IntRange(0, 3).Draw(m.rt, "asked") == 0 {
		return semelclient.Unknown, errLost
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects > 0 {
		return semelclient.Applied, nil
	}
	return semelclient.NotApplied, nil
}

// judge holds what a client said against the truth.
func (m *model) judge(r semelclient.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Outcome {
	case semelclient.Applied:
		if m.effects != 1 {
			m.rt.Errorf("got applied (%s), and there are %d effects", r.Reason, m.effects)
		}
	case semelclient.NotApplied:
		m.told = true
		if m.effects != 0 {
			m.rt.Errorf("got not applied (%s), and there are %d effects", r.Reason, m.effects)
		}
	case semelclient.Unknown:
	}
}

// inBubble runs f on virtual time. A panic, by which rapid ends a run early, is
// carried out of the bubble.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	var ended any
	synctest.Test(t, func(t *testing.T) {
		defer func() { ended = recover() }()
		f(t)
	})
	if ended != nil {
		panic(ended)
	}
}

func TestWhatTheClientSaysIsTrue(t *testing.T) {
	t.Parallel()
	outcomes := make(map[semelclient.Outcome]int)
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func(t *testing.T) {
			outcomes[life(t, rt)]++
		})
	})
	t.Logf("outcomes: %v", outcomes)
	for _, o := range []semelclient.Outcome{semelclient.Applied, semelclient.NotApplied, semelclient.Unknown} {
		assert.True(t, outcomes[o] > 0, "some end as %v", o)
	}
}

// life is that of one intent, from call to call and from process to process.
func life(t *testing.T, rt *rapid.T) semelclient.Outcome {
	t.Helper()
	m := &model{rt: rt, bodies: make(map[string]bool)}
	store := new(semelclient.MemoryStore)
	cfg := semelclient.Config{
		Transport: m, Policy: retry.Policy{MaxAttempts: rapid.IntRange(1, 6).Draw(rt, "attempts")},
		AuthorizeFunc: func(*http.Request, bool) error { return nil },
	}
	if rapid.Bool().Draw(rt, "asks") {
		cfg.AskFunc = m.ask
	}
	reported := 0
	var in semelclient.Intent
	var last semelclient.Result
	for n := range rapid.IntRange(1, 6).Draw(rt, "calls") {
		// Each call is one of another process: nothing but the store is handed on.
		client, err := semelclient.New(store, cfg)
		assert.NoError(t, err)
		if n == 0 {
			in, err = client.Intend(t.Context(), http.MethodPost, "http://bank.test/payments", nil, []byte(payment))
			assert.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds"))*time.Second)
		last = client.Do(ctx, in)
		cancel()
		reported += last.Attempts
		m.judge(last)
		time.Sleep(time.Duration(rapid.IntRange(0, 40*60).Draw(rt, "halfMinutes")) * time.Minute / 2)
	}
	time.Sleep(late + time.Second) // what is on its way arrives
	m.judge(last)
	if m.effects > 1 {
		rt.Errorf("got %d effects, want one at most", m.effects)
	}
	if reported != m.requests {
		rt.Errorf("got %d attempts reported, and %d arrived", reported, m.requests)
	}
	if len(m.bodies) > 1 {
		rt.Errorf("got other keys or bytes in some tries: %v", m.bodies)
	}
	return last.Outcome
}
