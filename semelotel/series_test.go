package semelotel_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
	"github.com/semel-dev/semel/semelotel"
)

// many is how often everything that a client chooses is drawn anew.
const many = 10_000

// random returns text that no other call returns.
func random() string { return fmt.Sprintf("r%016x", rand.Uint64()) }

// shop is a service behind the middleware whose metrics m takes. Its handler
// gives some of the answers that end an operation in different ways.
func shop(t *testing.T, m *meters) http.Handler {
	t.Helper()
	scope := func(r *http.Request) (string, error) { return r.Header.Get("X-Caller"), nil }
	mw, err := semelhttp.New(m.guard(t, semel.Hold()), scope, semelhttp.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	statuses := [endings]int{http.StatusCreated, http.StatusTooManyRequests, http.StatusServiceUnavailable}
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(statuses[len(r.URL.RawQuery)%endings])
	}
	h, err := mw.Protect(http.HandlerFunc(answer), semelhttp.Route{Name: "orders", Path: route})
	assert.NoError(t, err)
	return h
}

// endings is how many ways to end the handler of shop has.
const endings = 3

// visit sends requests that reach most outcomes of one ending, under one name.
func visit(h http.Handler, name string, ending int) {
	path := "/orders/" + name + "?" + strings.Repeat("x", endings+ending)
	for _, header := range []http.Header{
		{"Idempotency-Key": {name}, "X-Caller": {name}},
		{"Idempotency-Key": {name}, "X-Caller": {name}}, // again
		{"Idempotency-Key": {name}, "X-Caller": {name}, "Content-Type": {"text/" + name}},
		{"Idempotency-Key": {"not " + name}, "X-Caller": {name}},
		{"Idempotency-Key": {name}},
		{"X-Caller": {name}},
		{"Content-Type": {"application/grpc+" + name}},
	} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header = header
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

func TestSeriesDoNotGrowWithWhatClientsSend(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{})
	h := shop(t, m)
	for ending := range endings {
		visit(h, random(), ending)
	}
	before := m.series(t)
	for i := range many {
		visit(h, random(), i%endings)
	}
	after := m.series(t)
	assert.Equal(t, names(after), names(before))
	assert.True(t, len(after) > 15, "got %d series, want all the outcomes that the requests were made for:\n%s", len(after), strings.Join(after, "\n"))
	assert.Contains(t, strings.Join(after, "\n"), fmt.Sprintf(
		"semel.requests{error.type=key-missing,http.route=/orders/{id},semel.outcome=released,semel.surface=middleware} %d\n", many+endings))
}

// names returns the series without their values.
func names(series []string) []string {
	all := make([]string, len(series))
	for i, line := range series {
		all[i] = line[:strings.LastIndex(line, "}")+1]
	}
	return all
}

// A program may make its routes, outcomes and problems of what clients send.
// It should not; the series are bounded all the same.
func TestSeriesAreBoundedForAProgramThatLetsClientsNameThings(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{})
	for range 10 * semelotel.MaxValues {
		for kind := semel.EventClaimed; kind <= semel.EventSweep; kind++ {
			m.Observe(t.Context(), semel.Event{
				Kind:        kind,
				Route:       "/" + random(),
				OperationID: semel.NewOperationID("s", random(), random(), 0),
				Outcome:     random(),
				Problem:     random(),
				Err:         fmt.Errorf("key %s: %w", random(), driverError{}),
			})
		}
	}
	perMetric := make(map[string]int)
	for _, line := range m.series(t) {
		name, _, _ := strings.Cut(line, "{")
		perMetric[name]++
	}
	for name, n := range perMetric {
		assert.True(t, n <= semelotel.MaxValues+1 || n <= 3*(semelotel.MaxValues+1) && name == "semel.operation.duration", "%s has %d series", name, n)
	}
	assert.Contains(t, strings.Join(m.series(t), "\n"), "semel.takeovers{http.route=_OTHER} ")
}

func TestALabelWithoutAValueIsOther(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{})
	m.Observe(t.Context(), semel.Event{Kind: semel.EventTakeover})
	assert.Equal(t, m.series(t), []string{"semel.takeovers{http.route=_OTHER} 1"})
}

func BenchmarkObserve(b *testing.B) {
	m := newMeters(b, semelotel.Config{})
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(b.Context(), semel.Event{Kind: semel.EventRequest, Route: route, Outcome: "executed"})
	}
}
