package semelotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelotel"
)

// meters are an observer and what it has reported.
type meters struct {
	*semelotel.Observer

	reader *metric.ManualReader
}

func newMeters(t testing.TB, cfg semelotel.Config) *meters {
	t.Helper()
	reader := metric.NewManualReader()
	// The SDK's own limit is off: the observer has to hold by itself.
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(-1))
	o, err := semelotel.New(provider, cfg)
	assert.NoError(t, err)
	return &meters{o, reader}
}

func (m *meters) collect(t testing.TB) []metricdata.Metrics {
	t.Helper()
	var got metricdata.ResourceMetrics
	assert.NoError(t, m.reader.Collect(context.Background(), &got))
	var all []metricdata.Metrics
	for _, scope := range got.ScopeMetrics {
		assert.Equal(t, scope.Scope.Name, "github.com/semel-dev/semel/semelotel")
		all = append(all, scope.Metrics...)
	}
	return all
}

// series returns a line for each series, in order: its name, its labels, and
// its value, which of a histogram is the count and the sum.
func (m *meters) series(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, metric := range m.collect(t) {
		add := func(labels attribute.Set, value string) {
			lines = append(lines, fmt.Sprintf("%s{%s} %s", metric.Name, labels.Encoded(attribute.DefaultEncoder()), value))
		}
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprintf("%d %vs", p.Count, p.Sum))
			}
		default:
			t.Errorf("%s: got %T, want a kind that this test knows", metric.Name, data)
		}
	}
	slices.Sort(lines)
	return lines
}

// of returns the series of the metrics with these names.
func (m *meters) of(t testing.TB, names ...string) []string {
	t.Helper()
	return slices.DeleteFunc(m.series(t), func(line string) bool {
		name, _, _ := strings.Cut(line, "{")
		return !slices.Contains(names, name)
	})
}

// guard is a guard over a store in memory that m observes and times.
func (m *meters) guard(t testing.TB, recovery semel.Recovery) *semel.Guard {
	t.Helper()
	inner, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	g, err := semel.New(m.Store(inner, ""), recovery, semel.Config{Observer: m, Logger: slog.New(slog.DiscardHandler)})
	assert.NoError(t, err)
	return g
}
