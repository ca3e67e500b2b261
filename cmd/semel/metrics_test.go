package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// scrape returns what GET /metrics shows, without comments, buckets and sums.
func (d *running) scrape(t *testing.T) []string {
	t.Helper()
	a := d.send(t, http.MethodGet, "/metrics", "")
	assert.Equal(t, a.Status, http.StatusOK, "%s", a.Body)
	var samples []string
	for line := range strings.Lines(a.Body) {
		name, _, _ := strings.Cut(line, "{")
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(name, "_bucket") && !strings.HasSuffix(name, "_sum") {
			samples = append(samples, strings.TrimSpace(line))
		}
	}
	return samples
}

// eventuallyScrapes waits for samples: a request is counted when it has been
// answered, and perhaps after one that was answered later.
func (d *running) eventuallyScrapes(t *testing.T, samples ...string) []string {
	t.Helper()
	var got []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the metrics showed %q", got)
		}
	})
	assert.Eventually(t, fmt.Sprintf("the metrics show %q", samples), func() bool {
		got = d.scrape(t)
		return !slices.ContainsFunc(samples, func(sample string) bool { return !slices.Contains(got, sample) })
	})
	return got
}

func TestMetricsCountPaymentsReplaysAndRefusals(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	const key, customer = "canary-key-7f3a", "canary-customer-7f3a"
	var id string
	for range 3 {
		a := d.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, key, payments.HeaderCustomer, customer)
		assert.Equal(t, a.Status, http.StatusCreated, "%s", a.Body)
		id, _ = a.payment(t)
	}
	d.pay(t, "k2")
	d.send(t, http.MethodPost, "/payments", strings.Replace(order, "2500", "1", 1), payments.HeaderKey, "k2")
	d.send(t, http.MethodPost, "/payments", order)
	d.send(t, http.MethodPost, "/payments?canary=7f3a", order, payments.HeaderKey, "a canary")
	d.send(t, http.MethodPost, "/unsafe/payments", order, payments.HeaderKey, "k3") // nobody's

	want := []string{
		`semel_operation_duration_seconds_count{http_route="/payments",semel_state="done"} 2`,
		`semel_replay_age_seconds_count{http_route="/payments"} 2`,
		`semel_requests_total{http_route="/payments",semel_outcome="executed",semel_surface="middleware"} 2`,
		`semel_requests_total{http_route="/payments",semel_outcome="replayed",semel_surface="middleware"} 2`,
		`semel_requests_total{error_type="key-invalid",http_route="/payments",semel_outcome="released",semel_surface="middleware"} 1`,
		`semel_requests_total{error_type="key-missing",http_route="/payments",semel_outcome="released",semel_surface="middleware"} 1`,
		`semel_requests_total{error_type="key-reused",http_route="/payments",semel_outcome="key-reused",semel_surface="middleware"} 1`,
		`semel_store_duration_seconds_count{db_system_name="sqlite",semel_store_operation="begin"} 5`,
		`semel_store_duration_seconds_count{db_system_name="sqlite",semel_store_operation="commit"} 2`,
		`semel_store_info{db_system_name="sqlite",semel_store_class="durable"} 1`,
		`target_info{service_name="payments"} 1`,
	}
	assert.Equal(t, d.eventuallyScrapes(t, want...), want)
	all := d.send(t, http.MethodGet, "/metrics", "").Body
	assert.True(t, !strings.Contains(all, "canary"), "no key, customer or path is in the metrics")
	assert.True(t, !strings.Contains(all, id), "no operation id is in the metrics")
	assert.True(t, !strings.Contains(d.send(t, http.MethodGet, "/demo/log", "").Body, "/metrics"), "the log is of payments")
}

func TestMetricsShowATakeoverAndHowLongTheOperationTook(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.arm(t, payments.KilledAfterCharge)
	d.payUntil(t, "k1")
	got := d.eventuallyScrapes(t, `semel_takeovers_total{http_route="/payments"} 1`)
	assert.True(t, slices.Contains(got, `semel_operation_duration_seconds_count{http_route="/payments",semel_state="done"} 1`), "got %q, want one operation done", got)
	// The lease of the dead attempt, 2 s, is part of the operation.
	all := d.send(t, http.MethodGet, "/metrics", "").Body
	assert.Contains(t, all, `semel_operation_duration_seconds_bucket{http_route="/payments",semel_state="done",le="1"} 0`)
}

func TestMetricsComeInTheFormatThatIsAskedFor(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.pay(t, "k1")
	plain := d.send(t, http.MethodGet, "/metrics", "", "Accept", "text/plain")
	assert.Contains(t, plain.Header.Get("Content-Type"), "text/plain; version=0.0.4")
	open := d.send(t, http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
	assert.Contains(t, open.Header.Get("Content-Type"), "application/openmetrics-text")
	assert.True(t, strings.HasSuffix(open.Body, "# EOF\n"), "OpenMetrics ends with # EOF")
}

var metricName = regexp.MustCompile(`(?m)^# TYPE (semel_\w+) `)

func TestMetricsAreCalledWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/metrics.md")
	assert.NoError(t, err)
	d := startDemo(t)
	d.pay(t, "k1")
	d.pay(t, "k1")
	d.eventuallyScrapes(t, `semel_requests_total{http_route="/payments",semel_outcome="replayed",semel_surface="middleware"} 1`)
	named := metricName.FindAllStringSubmatch(d.send(t, http.MethodGet, "/metrics", "").Body, -1)
	assert.Equal(t, len(named), 5)
	for _, m := range named {
		assert.Contains(t, string(document), " `"+m[1]+"` ")
	}
}
