package semelotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/semel-dev/semel"
)

// Store returns inner with its calls timed, the commits of joined mode among
// them, and reports its class. System is the database as the semantic
// conventions call it, such as "sqlite" or "postgresql"; empty, the label is
// left out. The abilities of inner stay in reach of semel.As.
func (o *Observer) Store(inner semel.Store, system string) semel.Store {
	if inner == nil {
		return nil // for semel.New to refuse
	}
	s := &store{inner: inner, observer: o}
	if system != "" {
		s.system = []attribute.KeyValue{attribute.String(labelSystem, system)}
	}
	class := attribute.String(labelClass, string(semel.ClassOf(inner)))
	o.storeInfo.Record(context.Background(), 1, metric.WithAttributes(append(s.system, class)...))
	if joiner, ok := semel.As[semel.Joiner](inner); ok {
		return &joinerStore{store: s, joiner: joiner}
	}
	return s
}

// store times the calls to the one inside.
type store struct {
	inner    semel.Store
	observer *Observer
	system   []attribute.KeyValue // empty, or the one label
}

var _ semel.Store = (*store)(nil)

// Unwrap returns the store inside, for semel.As.
func (s *store) Unwrap() semel.Store { return s.inner }

// Begin times the call.
func (s *store) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	start := time.Now()
	res, err := s.inner.Begin(ctx, p)
	s.took(ctx, "begin", start, err)
	return res, err
}

// Extend times the call.
func (s *store) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	start := time.Now()
	held, err := s.inner.Extend(ctx, c, p)
	s.took(ctx, "extend", start, err)
	return held, err
}

// Finish times the call.
func (s *store) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	start := time.Now()
	held, err := s.inner.Finish(ctx, c, p)
	s.took(ctx, "finish", start, err)
	return held, err
}

// Get times the call.
func (s *store) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	start := time.Now()
	rec, err := s.inner.Get(ctx, scope, key)
	s.took(ctx, "get", start, err)
	return rec, err
}

// Sweep times the call.
func (s *store) Sweep(ctx context.Context, limit int) (int, error) {
	start := time.Now()
	n, err := s.inner.Sweep(ctx, limit)
	s.took(ctx, "sweep", start, err)
	return n, err
}

// took records one call.
func (s *store) took(ctx context.Context, operation string, start time.Time, err error) {
	labels := append(make([]attribute.KeyValue, 0, 3), attribute.String(labelOperation, operation))
	labels = append(labels, s.system...)
	if err != nil {
		labels = append(labels, s.observer.failure.of(errorType(err)))
	}
	s.observer.storeDuration.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(labels...))
}

// joinerStore is a store whose inner one is a semel.Joiner. It is a type of
// its own: the method would make a Joiner of any store.
type joinerStore struct {
	*store

	joiner semel.Joiner
}

var _ semel.Joiner = (*joinerStore)(nil)

// Join returns the inner store's transaction with its commit timed.
func (s *joinerStore) Join(c semel.Claim) semel.Joint {
	return &joint{Joint: s.joiner.Join(c), store: s.store}
}

// joint times the commit of the transaction inside.
type joint struct {
	semel.Joint

	store *store
}

var _ semel.Joint = (*joint)(nil)

// Commit times the call. The time is that of the business writes as well, as
// far as the database leaves them to the commit.
func (j *joint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	start := time.Now()
	held, err := j.Joint.Commit(ctx, p)
	j.store.took(ctx, "commit", start, err)
	return held, err
}
