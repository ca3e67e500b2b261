package semelotel_test

import (
	"cmp"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelotel"
)

// row is a metric as the table of docs/metrics.md has it.
var row = regexp.MustCompile("(?m)^\\| `(semel\\.[a-z.]+)` \\| `(semel_[a-z_]+)` \\| (counter|histogram|gauge) \\| `?([^`|]*?)`? \\| (.+?) \\| ")

// The document names every metric with its kind, unit and labels, and no other.
func TestTheDocumentIsOfTheseMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	assert.NoError(t, err)
	var documented []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		labels := strings.Split(strings.ReplaceAll(m[5], "`", ""), ", ")
		slices.Sort(labels)
		documented = append(documented, describe(m[1], m[3], m[4], labels))
		assert.Equal(t, m[2], inPrometheus(m[1], m[3], m[4]))
	}
	slices.Sort(documented)

	m := newMeters(t, semelotel.Config{})
	for kind := semel.EventClaimed; kind <= semel.EventSweep; kind++ {
		m.Observe(t.Context(), semel.Event{Kind: kind, Outcome: "released", Problem: "key-missing", Err: errors.New("gone")})
	}
	synctest.Test(t, func(t *testing.T) {
		broken := m.Store(&slow{Store: newMemory(t), err: errors.New("gone")}, "sqlite")
		broken.Begin(t.Context(), semel.BeginParams{})
	})
	var reported []string
	for _, metric := range m.collect(t) {
		kind, labels := shape(t, metric.Data)
		reported = append(reported, describe(metric.Name, kind, metric.Unit, labels))
	}
	slices.Sort(reported)
	assert.Equal(t, documented, reported)
}

func describe(name, kind, unit string, labels []string) string {
	return name + ": " + kind + " in " + cmp.Or(unit, "none") + " by " + cmp.Or(strings.Join(labels, ", "), "none")
}

// inPrometheus is the name under the translation that the document asks for.
func inPrometheus(name, kind, unit string) string {
	name = strings.ReplaceAll(name, ".", "_")
	if unit == "s" {
		name += "_seconds"
	}
	if kind == "counter" {
		name += "_total"
	}
	return name
}

// shape returns the kind of a metric and its labels.
func shape(t *testing.T, data metricdata.Aggregation) (kind string, labels []string) {
	t.Helper()
	add := func(set attribute.Set) {
		for _, label := range set.ToSlice() {
			if !slices.Contains(labels, string(label.Key)) {
				labels = append(labels, string(label.Key))
			}
		}
	}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		kind = "counter"
		add(data.DataPoints[0].Attributes)
	case metricdata.Gauge[int64]:
		kind = "gauge"
		add(data.DataPoints[0].Attributes)
	case metricdata.Gauge[float64]:
		kind = "gauge"
		add(data.DataPoints[0].Attributes)
	case metricdata.Histogram[float64]:
		kind = "histogram"
		add(data.DataPoints[0].Attributes)
	}
	slices.Sort(labels)
	return kind, labels
}
