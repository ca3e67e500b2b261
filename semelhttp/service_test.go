package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

// service is the order service that the tests protect.
type service struct {
	store    *faultyStore
	counters semel.Counters
	guard    *semel.Guard
	mw       *semelhttp.Middleware

	mu   sync.Mutex
	runs int
}

// ran counts a run and returns how many there were.
func (s *service) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	return s.runs
}

func (s *service) runCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// settings are what a test changes about the service.
type settings struct {
	store    semel.Store // shared with another service; default one of its own
	recovery semel.Recovery
	guard    semel.Config
	mw       semelhttp.Config
	scope    semelhttp.ScopeFunc
}

// quiet is a logger that nobody hears.
var quiet = slog.New(slog.DiscardHandler)

func newService(t testing.TB, set settings) *service {
	t.Helper()
	if set.store == nil {
		set.store = newMemstore(t)
	}
	s := &service{store: &faultyStore{Store: set.store}}
	var err error
	if set.recovery == (semel.Recovery{}) {
		set.recovery = semel.Resume(semel.Forever)
	}
	if set.scope == nil {
		set.scope = callerScope
	}
	if set.guard.Logger == nil {
		set.guard.Logger = quiet
	}
	if set.mw.Logger == nil {
		set.mw.Logger = quiet
	}
	set.guard.Observer = &s.counters
	s.guard, err = semel.New(s.store, set.recovery, set.guard)
	assert.NoError(t, err)
	s.mw, err = semelhttp.New(s.guard, set.scope, set.mw)
	assert.NoError(t, err)
	return s
}

func newMemstore(t testing.TB) semel.Store {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	return store
}

// protect protects handler as the route, named "orders" unless it has a name.
func (s *service) protect(t testing.TB, route semelhttp.Route, handler http.HandlerFunc) http.Handler {
	t.Helper()
	if route.Name == "" {
		route.Name = "orders"
	}
	h, err := s.mw.Protect(handler, route)
	assert.NoError(t, err)
	return h
}

// created is the usual handler: it makes one more order.
func (s *service) created(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	n := s.ran()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
	w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, n))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "{\"id\":%d}\n", n)
}

// callerScope takes the caller from X-Caller; "nobody" has none.
func callerScope(r *http.Request) (string, error) {
	switch caller := r.Header.Get("X-Caller"); caller {
	case "nobody":
		return "", errors.New("no caller")
	case "":
		return "orders:anonymous", nil
	default:
		return "orders:" + caller, nil
	}
}

// reply is a whole response.
type reply struct {
	*http.Response

	text string
}

// post sends a keyed POST with client and reads the whole answer.
func post(t testing.TB, client *http.Client, url, key, body string, header ...string) reply {
	t.Helper()
	r, err := do(client, http.MethodPost, url, key, body, header...)
	assert.NoError(t, err)
	return r
}

// do sends a request; header is a list of names and values.
func do(client *http.Client, method, url, key, body string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{Response: resp, text: string(text)}, err
}

// keyed is a POST under a key, for tests that send it in a way of their own.
func keyed(ctx context.Context, t testing.TB, url, key string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	assert.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	return req
}

// outcome is what Semel-Outcome says.
func (r reply) outcome() string { return r.Header.Get("Semel-Outcome") }

// replayed reports whether the reply says that it is a replay.
func (r reply) replayed() bool { return r.Header.Get("Idempotent-Replayed") == "true" }

// exists reports whether there is a file of that name.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// faultyStore is a store that can be made to fail, and that can be joined.
type faultyStore struct {
	semel.Store

	mu       sync.Mutex
	beginErr error
	beginFor time.Duration // Begin hangs for so long, or until its context ends
	extend   error
	slow     time.Duration // Extend takes so long
	finish   error
	columns  bool  // Finish writes the header as text
	commit   error // Commit refuses or breaks
	get      error
	point    string        // where the first call that comes there waits
	goOn     chan struct{} // until this is closed
	journal  []string
}

var (
	_ semel.Store  = (*faultyStore)(nil)
	_ semel.Joiner = (*faultyStore)(nil)
)

func (s *faultyStore) Unwrap() semel.Store { return s.Store }

func (s *faultyStore) set(f func(*faultyStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// The points where a call to the store can be held.
const (
	claimed   = "claimed"   // Begin has claimed, and its answer is on the way
	finishing = "finishing" // Finish is on its way
	finished  = "finished"  // Finish is done, and its answer is on the way
)

// holdAt makes the first call that comes to point wait there until goOn is
// called.
func (s *faultyStore) holdAt(point string) (goOn func()) {
	wait := make(chan struct{})
	s.set(func(s *faultyStore) { s.point, s.goOn = point, wait })
	return func() { close(wait) }
}

func (s *faultyStore) passes(point string) {
	s.mu.Lock()
	held := s.point == point
	if held {
		s.point = ""
	}
	wait := s.goOn
	s.mu.Unlock()
	if held {
		<-wait
	}
}

func (s *faultyStore) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	s.mu.Lock()
	err, hang := s.beginErr, s.beginFor
	s.mu.Unlock()
	if hang > 0 {
		select {
		case <-time.After(hang):
		case <-ctx.Done():
			return semel.BeginResult{}, ctx.Err()
		}
	}
	if err != nil {
		return semel.BeginResult{}, err
	}
	res, err := s.Store.Begin(ctx, p)
	if res.Outcome == semel.BeginClaimed {
		s.passes(claimed)
	}
	return res, err
}

func (s *faultyStore) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	s.mu.Lock()
	err, slow := s.extend, s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	if err != nil {
		return semel.Held{}, err
	}
	return s.Store.Extend(ctx, c, p)
}

func (s *faultyStore) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	s.mu.Lock()
	err, columns := s.finish, s.columns
	s.mu.Unlock()
	if err == nil && columns {
		_, err = p.Reply.Header.MarshalText()
	}
	if err != nil {
		return semel.Held{}, err
	}
	s.passes(finishing)
	held, err := s.Store.Finish(ctx, c, p)
	s.passes(finished)
	return held, err
}

func (s *faultyStore) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	s.mu.Lock()
	err := s.get
	s.mu.Unlock()
	if err != nil {
		return semel.Record{}, err
	}
	return s.Store.Get(ctx, scope, key)
}

// note writes down what happened to a transaction.
func (s *faultyStore) note(what string) {
	s.set(func(s *faultyStore) { s.journal = append(s.journal, what) })
}

// transactions returns what happened to the business transactions, in order.
func (s *faultyStore) transactions() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.journal, " ")
}

// Join returns a transaction that does nothing but be noted.
func (s *faultyStore) Join(c semel.Claim) semel.Joint { return &joint{store: s, claim: c} }

type joint struct {
	store  *faultyStore
	claim  semel.Claim
	opened bool
}

type jointKey struct{}

func (j *joint) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, j)
}

func (j *joint) Opened() bool { return j.opened }

func (j *joint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	j.store.mu.Lock()
	err := j.store.commit
	j.store.mu.Unlock()
	if err != nil {
		j.store.note("refused")
		return semel.Held{}, err
	}
	j.store.note("committed")
	return j.store.Finish(ctx, j.claim, p)
}

func (j *joint) Rollback() error {
	j.store.note("rolled-back")
	return nil
}

// openTx stands for a store's Tx function.
func openTx(ctx context.Context) {
	if j, ok := ctx.Value(jointKey{}).(*joint); ok {
		j.opened = true
	}
}
