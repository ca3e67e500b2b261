package service

import (
	"context"
	"log/slog"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
)

var _ semel.Observer = watcher{}

// watcher writes a line for each thing that Semel's store has said, so that one
// can watch it, and passes it on.
type watcher struct {
	semel.Observer
	log    *slog.Logger
	system System
	mode   semel.Mode
}

// Observe writes the line. What became of the request has a line of
// semelhttp's own.
func (w watcher) Observe(ctx context.Context, e semel.Event) {
	w.Observer.Observe(ctx, e)
	if e.Kind == semel.EventRequest {
		return
	}
	w.log.DebugContext(ctx, payments.LineSemel, "event", e.Kind.String(), "attempt", e.Attempt, "operation_id", e.OperationID.String(),
		"store", w.system, "mode", w.mode.String())
}
