package semelotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/semel-dev/semel"
)

// The labels. Names that begin with semel are our own; the others mean what the
// semantic conventions of OpenTelemetry say.
const (
	labelOutcome   = "semel.outcome"
	labelSurface   = "semel.surface"
	labelState     = "semel.state"
	labelOperation = "semel.store.operation"
	labelClass     = "semel.store.class"
	labelRoute     = "http.route"
	labelError     = "error.type"
	labelSystem    = "db.system.name"
)

// MaxValues is how many different values of one label are reported by their
// names. A program has fewer, unless it makes them of what requests say.
const MaxValues = 100

// Other is what every further value of a label is called, and one that is
// empty.
const Other = "_OTHER"

// label is a label whose values are bounded: the first MaxValues keep their
// names.
type label struct {
	name string

	mu   sync.RWMutex
	seen map[string]bool
}

func newLabel(name string) *label { return &label{name: name, seen: make(map[string]bool)} }

// of returns the label with a value.
func (l *label) of(value string) attribute.KeyValue {
	if !l.admits(value) {
		value = Other
	}
	return attribute.String(l.name, value)
}

func (l *label) admits(value string) bool {
	l.mu.RLock()
	seen, full := l.seen[value], len(l.seen) >= MaxValues
	l.mu.RUnlock()
	if seen || full || value == "" {
		return seen
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) < MaxValues {
		l.seen[value] = true
	}
	return l.seen[value]
}

// errorType names the kind of a fault: never its text, which may hold anything.
func errorType(err error) string {
	var known *semel.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &known):
		return string(known.Code)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}
