// Package service is the payment service of the reference system: one business
// function behind three doors.
//
// POST /payments has Semel before it. The service charges the bank first, with
// the operation id as the bank's key, and then writes the payment. Where the
// keys are beside the payments this is joined mode: the payment is written in
// the transaction in which Semel saves the reply. Where they are in another
// store it is leased mode: the payment is written first, once for each
// operation id, and the reply saved afterwards, so that a crash in between
// leaves a repeat nothing to do but to find it. Whatever breaks, a repeat under
// the same key ends with one payment and one charge, and both carry the
// operation id.
//
// POST /unsafe/payments has nothing before it, and POST /naive/payments what
// people write first: look the key up, do the work, save the key afterwards.
// Both are wrong on purpose.
//
// PUT and DELETE /orders/{id} need no key: the client names the order, so a
// repeat has nothing left to do.
package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/semelhttp"
)

const (
	// serviceName is part of every operation id.
	serviceName = "payments"
	// defaultLease is short so that a killed attempt is taken over while one watches.
	defaultLease = 2 * time.Second
	// bankMemory is how long a repeat may be charged under the same operation
	// id. The bank of this system never forgets; a day is what real ones
	// promise.
	bankMemory = 24 * time.Hour
	// handlerDeadline is how long one payment may take.
	handlerDeadline = 30 * time.Second
)

// MaxDemo is the longest name of a demo, in bytes.
const MaxDemo = 64

// Config says where the service finds the bank. Bank is required.
type Config struct {
	// Bank is the bank's address, "HOST:PORT".
	Bank string
	// Demo is what this demo is called among those that share a place: it sees
	// its own rows and keys and no others. At most MaxDemo bytes. Default: the
	// place is its own.
	Demo string
	// LogKeys writes idempotency keys into the log as they are. Default: the
	// beginning of their digest.
	LogKeys bool
	// Logger gets a line for each payment. Default slog.Default().
	Logger *slog.Logger
}

// Service takes payments. The zero value is not usable: see New.
type Service struct {
	place   Place
	sql     statements
	demo    string
	mode    semel.Mode
	db      *sql.DB // writes; to SQLite it is the one writer
	read    *sql.DB
	bank    bank
	sweeper *semel.Sweeper
	log     *slog.Logger
	logKeys bool
	store   semel.Store
	// observer and metrics outlive a change of the lease.
	observer semel.Observer
	metrics  http.Handler
	current  atomic.Pointer[routes]
	// changing is held while the lease is changed, so that the one that is
	// kept is the one that holds.
	changing sync.Mutex
}

// routes answer under one lease.
type routes struct {
	lease   time.Duration
	handler http.Handler
}

// New returns a service over a place, in which it creates what is missing,
// Semel's tables included.
func New(ctx context.Context, place Place, cfg Config) (*Service, error) {
	switch {
	case cfg.Bank == "":
		return nil, errors.New("service: Config.Bank is required: the bank's HOST:PORT")
	case len(cfg.Demo) > MaxDemo:
		return nil, fmt.Errorf("service: Config.Demo has %d bytes; the most is %d", len(cfg.Demo), MaxDemo)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := place.complete(); err != nil {
		return nil, err
	}
	if err := place.Prepare(ctx); err != nil {
		return nil, err
	}
	records, system, err := place.records(ctx)
	if err != nil {
		return nil, err
	}
	observer, metrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	s := &Service{
		place: place, sql: place.Dialect.statements(), demo: cfg.Demo, mode: place.mode(),
		db: place.Business.Write, read: place.Business.Read, bank: newBank(cfg.Bank, cfg.Logger),
		log: cfg.Logger, logKeys: cfg.LogKeys, store: observer.Store(records, system.metricsName()), metrics: metrics,
	}
	s.observer = watcher{observer, cfg.Logger, system, s.mode}
	if s.sweeper, err = semel.NewSweeper(s.store, semel.SweeperConfig{Observer: observer, Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	d, err := s.savedLease(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.protect(d); err != nil {
		return nil, err
	}
	return s, nil
}

// protect puts Semel with that lease before the keyed door, from the next
// request on.
func (s *Service) protect(d time.Duration) error {
	guard, err := semel.New(s.store, semel.Resume(bankMemory), semel.Config{
		Service:         serviceName,
		Lease:           d,
		HandlerDeadline: handlerDeadline,
		Observer:        s.observer,
		Logger:          s.log,
	})
	if err != nil {
		return err
	}
	handler, err := s.routes(guard)
	if err != nil {
		return err
	}
	s.current.Store(&routes{lease: d, handler: handler})
	return nil
}

// Handler returns what the service answers.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /lease", s.showLease)
	mux.HandleFunc("PUT /lease", s.setLease)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.current.Load().handler.ServeHTTP(w, r) })
	return mux
}

// Run sweeps expired keys until ctx ends.
func (s *Service) Run(ctx context.Context) error { return s.sweeper.Run(ctx) }

// scopeOf is whose key it is, of which demo.
func (s *Service) scopeOf(r *http.Request) (string, error) {
	scope, err := payments.ScopeOf(r)
	if s.demo != "" {
		scope = "demo-" + s.demo + "/" + scope
	}
	return scope, err
}

// routes puts Semel before the one door that is to have it.
func (s *Service) routes(guard *semel.Guard) (http.Handler, error) {
	mw, err := semelhttp.New(guard, s.scopeOf, semelhttp.Config{
		PublishedScope: "customer",
		Logger:         s.log,
		LogKeys:        s.logKeys,
	})
	if err != nil {
		return nil, err
	}
	keyed, err := mw.Protect(http.HandlerFunc(s.payKeyed), semelhttp.Route{
		Name:    "payments",
		Path:    payments.Keyed.Path(),
		Methods: []string{http.MethodPost},
		Mode:    s.mode,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+payments.Keyed.Path(), understood(keyed))
	mux.Handle("POST "+payments.Keyless.Path(), http.HandlerFunc(s.payKeyless))
	mux.Handle("POST "+payments.Naive.Path(), http.HandlerFunc(s.payNaive))
	mux.HandleFunc("GET /payments/{id}", s.getPayment)
	mux.HandleFunc("PUT /orders/{id}", s.putOrder)
	mux.HandleFunc("GET /orders/{id}", s.getOrder)
	mux.HandleFunc("DELETE /orders/{id}", s.deleteOrder)
	mux.HandleFunc("GET /totals", s.totals)
	mux.Handle("/.well-known/idempotency", mw.WellKnown())
	mux.Handle("GET /metrics", s.metrics)
	mux.HandleFunc("/", payments.NotFound)
	return payments.Numbered(mux), nil
}
