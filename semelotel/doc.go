// Package semelotel reports what a guard does as OpenTelemetry metrics. It uses
// the API alone: which SDK and exporter get them, if any, is the program's
// choice.
//
// No label grows with what clients send. Keys, scopes and operation ids are
// never labels, and of each label at most [MaxValues] different values are
// reported by their names; the rest is [Other]. docs/metrics.md lists every
// metric with its unit, its labels and what to alert on.
//
// An [Observer] goes into the Observer field of semel.Config. Its Store method
// also times the calls to a store.
package semelotel
