package semelotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/semel-dev/semel"
)

// scopeName names the instrumentation to OpenTelemetry.
const scopeName = "github.com/semel-dev/semel/semelotel"

// SurfaceMiddleware is the surface of semelhttp.
const SurfaceMiddleware = "middleware"

// Config holds the optional settings of an Observer. Zero means the default.
type Config struct {
	// Surface says in one word what stands before the guard. Default SurfaceMiddleware.
	Surface string
}

// Observer reports what it is told as metrics. It is safe for concurrent use,
// and one may serve several guards.
type Observer struct {
	surface attribute.KeyValue
	route   *label
	outcome *label
	failure *label

	requests          metric.Int64Counter
	operationDuration metric.Float64Histogram
	replayAge         metric.Float64Histogram
	takeovers         metric.Int64Counter
	leaseLost         metric.Int64Counter
	deadlineExceeded  metric.Int64Counter
	storeFaults       metric.Int64Counter
	storeDuration     metric.Float64Histogram
	storeInfo         metric.Int64Gauge
	sweepLag          metric.Float64Gauge
	stuckAge          metric.Float64Gauge
}

var _ semel.Observer = (*Observer)(nil)

// Bucket bounds, in seconds.
var (
	// operationBuckets reach from a call in memory to a takeover after a day.
	operationBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 60, 600, 3600, 86400}
	// replayBuckets reach to a week, with the usual retentions among them.
	replayBuckets = []float64{1, 10, 60, 600, 3600, 6 * 3600, 12 * 3600, 18 * 3600, 24 * 3600, 2 * 86400, 3 * 86400, 7 * 86400}
	// storeBuckets begin below a write to a local file.
	storeBuckets = []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
)

// New returns an observer with the instruments of provider, which is required:
// otel.GetMeterProvider() is the program's own. Errors are semel.ErrConfig, or
// the provider's.
func New(provider metric.MeterProvider, cfg Config) (*Observer, error) {
	if provider == nil {
		return nil, semel.NewError(semel.CodeConfig, nil, "semelotel: provider is required: the metric.MeterProvider of the program")
	}
	if cfg.Surface == "" {
		cfg.Surface = SurfaceMiddleware
	}
	o := &Observer{
		surface: attribute.String(labelSurface, cfg.Surface),
		route:   newLabel(labelRoute),
		outcome: newLabel(labelOutcome),
		failure: newLabel(labelError),
	}
	m := maker{meter: provider.Meter(scopeName)}
	o.requests = m.counter("semel.requests", "{request}", "Requests, by what became of them.")
	o.operationDuration = m.histogram("semel.operation.duration", operationBuckets, "Time from the first claim of an operation to the end of an attempt at it.")
	o.replayAge = m.histogram("semel.replay.age", replayBuckets, "Time since an operation ended, when it is asked for again.")
	o.takeovers = m.counter("semel.takeovers", "{attempt}", "Attempts begun over an earlier one without a known end.")
	o.leaseLost = m.counter("semel.lease.lost", "{attempt}", "Attempts that found at their end that a later one had taken over.")
	o.deadlineExceeded = m.counter("semel.deadline.exceeded", "{attempt}", "Attempts whose work had not returned at its deadline.")
	o.storeFaults = m.counter("semel.store.faults", "{fault}", "Calls to the store that failed.")
	o.storeDuration = m.histogram("semel.store.duration", storeBuckets, "Duration of calls to the store.")
	o.storeInfo = m.gauge("semel.store.info", "1, with the class of the store as a label: what it may lose of what it has acknowledged.")
	o.sweepLag = m.seconds("semel.sweep.lag", "Age of the record that expired first of those that no sweeper has removed.")
	o.stuckAge = m.seconds("semel.stuck.age", "Time since the oldest operation that waits for somebody was first claimed.")
	if m.err != nil {
		return nil, m.err
	}
	return o, nil
}

// maker makes instruments, and keeps what went wrong.
type maker struct {
	meter metric.Meter
	err   error
}

func (m *maker) counter(name, unit, description string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.err = errors.Join(m.err, err)
	return c
}

func (m *maker) histogram(name string, buckets []float64, description string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
	m.err = errors.Join(m.err, err)
	return h
}

func (m *maker) gauge(name, description string) metric.Int64Gauge {
	g, err := m.meter.Int64Gauge(name, metric.WithDescription(description))
	m.err = errors.Join(m.err, err)
	return g
}

func (m *maker) seconds(name, description string) metric.Float64Gauge {
	g, err := m.meter.Float64Gauge(name, metric.WithUnit("s"), metric.WithDescription(description))
	m.err = errors.Join(m.err, err)
	return g
}

// Observe counts e. It does not block.
func (o *Observer) Observe(ctx context.Context, e semel.Event) {
	switch e.Kind {
	case semel.EventRequest:
		o.request(ctx, e)
	case semel.EventReplayed, semel.EventReplyNotKept:
		o.replayAge.Record(ctx, seconds(e.ReplyAge), metric.WithAttributes(o.route.of(e.Route)))
	case semel.EventDone:
		o.ended(ctx, e, semel.StateDone)
	case semel.EventReleased:
		o.ended(ctx, e, semel.StateReleased)
	case semel.EventUnknown:
		o.ended(ctx, e, semel.StateUnknown)
	case semel.EventTakeover:
		o.takeovers.Add(ctx, 1, metric.WithAttributes(o.route.of(e.Route)))
	case semel.EventLeaseLost:
		o.leaseLost.Add(ctx, 1, metric.WithAttributes(o.route.of(e.Route)))
	case semel.EventStillRunning:
		o.deadlineExceeded.Add(ctx, 1, metric.WithAttributes(o.route.of(e.Route)))
	case semel.EventSweep:
		if e.Lag >= 0 {
			o.sweepLag.Record(ctx, seconds(e.Lag))
		}
		if e.Stuck >= 0 {
			o.stuckAge.Record(ctx, seconds(e.Stuck))
		}
	case semel.EventStoreFault:
		o.storeFaults.Add(ctx, 1, metric.WithAttributes(o.failure.of(errorType(e.Err))))
	}
}

// request counts one request.
func (o *Observer) request(ctx context.Context, e semel.Event) {
	labels := append(make([]attribute.KeyValue, 0, 4), o.outcome.of(e.Outcome), o.route.of(e.Route), o.surface)
	if e.Problem != "" {
		labels = append(labels, o.failure.of(e.Problem))
	}
	o.requests.Add(ctx, 1, metric.WithAttributes(labels...))
}

// ended records how an attempt left its operation.
func (o *Observer) ended(ctx context.Context, e semel.Event, s semel.State) {
	o.operationDuration.Record(ctx, seconds(e.SinceFirst), metric.WithAttributes(o.route.of(e.Route), attribute.String(labelState, s.String())))
}

// seconds is d, and zero where the store's clock was set back in between.
func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }
