package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/semel-dev/semel/semelotel"
)

// newMetrics returns an observer for the guard, and a handler that shows
// Prometheus what it was told. Names and labels are pinned here, since the
// exporter's defaults have changed before: they are those of docs/metrics.md.
func newMetrics() (*semelotel.Observer, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, nil, err
	}
	observer, err := semelotel.New(metric.NewMeterProvider(
		metric.WithReader(exporter),
		metric.WithResource(resource.NewSchemaless(attribute.String("service.name", serviceName))),
	), semelotel.Config{})
	if err != nil {
		return nil, nil, err
	}
	// OpenMetrics is the format that carries exemplars.
	return observer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), nil
}
