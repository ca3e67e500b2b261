package semelotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelotel"
)

const route = "/orders/{id}"

func TestEachEventWorthAMetricHasOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		event semel.Event
		want  string
	}{
		{
			"a request that ran",
			semel.Event{Kind: semel.EventRequest, Outcome: "executed"},
			"semel.requests{http.route=/orders/{id},semel.outcome=executed,semel.surface=middleware} 1",
		},
		{
			"a request that was refused",
			semel.Event{Kind: semel.EventRequest, Outcome: "released", Problem: "key-missing"},
			"semel.requests{error.type=key-missing,http.route=/orders/{id},semel.outcome=released,semel.surface=middleware} 1",
		},
		{
			"an operation that is done",
			semel.Event{Kind: semel.EventDone, Duration: time.Second, SinceFirst: 90 * time.Second},
			"semel.operation.duration{http.route=/orders/{id},semel.state=done} 1 90s",
		},
		{
			"an operation that had no effect",
			semel.Event{Kind: semel.EventReleased, SinceFirst: time.Second},
			"semel.operation.duration{http.route=/orders/{id},semel.state=released} 1 1s",
		},
		{
			"an attempt whose effect nobody knows",
			semel.Event{Kind: semel.EventUnknown, SinceFirst: time.Second},
			"semel.operation.duration{http.route=/orders/{id},semel.state=unknown} 1 1s",
		},
		{
			"a replay",
			semel.Event{Kind: semel.EventReplayed, ReplyAge: time.Hour},
			"semel.replay.age{http.route=/orders/{id}} 1 3600s",
		},
		{
			"a repeat whose reply was not kept",
			semel.Event{Kind: semel.EventReplyNotKept, ReplyAge: time.Minute},
			"semel.replay.age{http.route=/orders/{id}} 1 60s",
		},
		{
			"a replay after the store's clock was set back",
			semel.Event{Kind: semel.EventReplayed, ReplyAge: -time.Hour},
			"semel.replay.age{http.route=/orders/{id}} 1 0s",
		},
		{"a sweep", semel.Event{Kind: semel.EventSweep, Removed: 7, Lag: 90 * time.Second, Stuck: -1}, "semel.sweep.lag{} 90"},
		{"what a sweeper has seen stuck", semel.Event{Kind: semel.EventSweep, Lag: -1, Stuck: 2 * time.Hour}, "semel.stuck.age{} 7200"},
		{"that nothing is stuck any more", semel.Event{Kind: semel.EventSweep, Lag: -1}, "semel.stuck.age{} 0"},
		{"a takeover", semel.Event{Kind: semel.EventTakeover}, "semel.takeovers{http.route=/orders/{id}} 1"},
		{"a lost lease", semel.Event{Kind: semel.EventLeaseLost}, "semel.lease.lost{http.route=/orders/{id}} 1"},
		{"work past its deadline", semel.Event{Kind: semel.EventStillRunning}, "semel.deadline.exceeded{http.route=/orders/{id}} 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMeters(t, semelotel.Config{})
			c.event.Route = route
			m.Observe(t.Context(), c.event)
			assert.Equal(t, m.series(t), []string{c.want})
		})
	}
}

func TestALagAndAnAgeThatNobodyKnowsAreNone(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{})
	m.Observe(t.Context(), semel.Event{Kind: semel.EventSweep, Lag: -1, Stuck: -1})
	assert.Equal(t, len(m.series(t)), 0, "series")
}

// driverError is an error whose text holds what no label may.
type driverError struct{}

func (driverError) Error() string { return "UNIQUE constraint failed for key k1 of payments:alice" }

func TestAStoreFaultIsNamedByItsKindAndNotByItsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("begin: %w", context.DeadlineExceeded), "timeout"},
		{fmt.Errorf("begin: %w", context.Canceled), "canceled"},
		{fmt.Errorf("commit k1: %w", semel.ErrCommitRefused), "commit_refused"},
		{fmt.Errorf("sqlstore: %w", fmt.Errorf("k1: %w", driverError{})), "semelotel_test.driverError"},
	} {
		m := newMeters(t, semelotel.Config{})
		m.Observe(t.Context(), semel.Event{Kind: semel.EventStoreFault, Err: c.err})
		assert.Equal(t, m.series(t), []string{"semel.store.faults{error.type=" + c.want + "} 1"})
	}
}

func TestACallerThatHungUpIsCountedAllTheSame(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{})
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	m.Observe(gone, semel.Event{Kind: semel.EventRequest, Outcome: "executed", Route: route})
	m.Observe(gone, semel.Event{Kind: semel.EventDone, Route: route})
	assert.Equal(t, len(m.series(t)), 2)
}

func TestTheSurfaceIsTheOneConfigured(t *testing.T) {
	t.Parallel()
	m := newMeters(t, semelotel.Config{Surface: "worker"})
	m.Observe(t.Context(), semel.Event{Kind: semel.EventRequest, Outcome: "replayed", Route: route})
	assert.Equal(t, m.series(t), []string{"semel.requests{http.route=/orders/{id},semel.outcome=replayed,semel.surface=worker} 1"})
}

func TestAGuardThatIsObserved(t *testing.T) {
	t.Parallel()
	call := semel.Call{Scope: "orders", Key: "k1", Fingerprint: semel.FingerprintOf([]byte("a")), Route: route}
	work := func(err error) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) {
			time.Sleep(2 * time.Second)
			return nil, err
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMeters(t, semelotel.Config{})
		g := m.guard(t, semel.Resume(semel.Forever))
		g.Do(t.Context(), call, work(errors.New("no answer")))
		time.Sleep(time.Minute)
		_, err := g.Do(t.Context(), call, work(nil))
		assert.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = g.Do(t.Context(), call, work(nil))
		assert.NoError(t, err)
		assert.Equal(t, m.of(t, "semel.operation.duration", "semel.replay.age", "semel.takeovers"), []string{
			"semel.operation.duration{http.route=/orders/{id},semel.state=done} 1 64s",
			"semel.operation.duration{http.route=/orders/{id},semel.state=unknown} 1 2s",
			"semel.replay.age{http.route=/orders/{id}} 1 3600s",
			"semel.takeovers{http.route=/orders/{id}} 1",
		})
	})
}

// stingyProvider makes no counters.
type stingyProvider struct{ noop.MeterProvider }

func (stingyProvider) Meter(string, ...metric.MeterOption) metric.Meter { return stingyMeter{} }

type stingyMeter struct{ noop.Meter }

var errStingy = errors.New("no counters today")

func (stingyMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errStingy
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	t.Run("to do without a provider", func(t *testing.T) {
		t.Parallel()
		_, err := semelotel.New(nil, semelotel.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "provider is required")
	})
	t.Run("a provider that refuses", func(t *testing.T) {
		t.Parallel()
		o, err := semelotel.New(stingyProvider{}, semelotel.Config{})
		assert.ErrorIs(t, err, errStingy)
		assert.True(t, o == nil, "there is no observer")
	})
}
