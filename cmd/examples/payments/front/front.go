// Package front is the one public address of the reference system. It passes
// requests on to the payment service and the bank, byte for byte, serves the
// page, and owns everything under /demo/: the faults, the ledger and the log.
//
// The front is the network of the demo, so it is where requests and replies
// get lost. It never answers for a service that may have done the work: when
// the service dies half-way, the client's connection is closed without an
// answer. It never sends a request twice: each travels on a connection of its
// own, since net/http resends by itself on a connection it has used before
// (R20).
package front

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// DialFunc connects to a process, waiting while it is being started.
type DialFunc func(ctx context.Context) (net.Conn, error)

// Config says where the front finds the rest. All fields but Logger are
// required.
type Config struct {
	Service DialFunc
	Bank    DialFunc
	// Orders is the database of the order book.
	Orders *sql.DB
	// Page answers every path that is nobody else's.
	Page http.Handler
	// Crowd answers /demo/crowd.
	Crowd http.Handler
	// Log gets every request and is shown at GET /demo/log.
	Log *Log
	// Logger gets what goes wrong in the front itself. Default
	// slog.Default().
	Logger *slog.Logger
}

// Front is the public handler.
type Front struct {
	cfg     Config
	faults  faults
	book    *book
	service backend
	bank    backend
	stopped chan struct{} // closed by stop
	stop    func()
}

// New returns a front. It creates the order book's table and starts nothing.
func New(ctx context.Context, cfg Config) (*Front, error) {
	if cfg.Service == nil || cfg.Bank == nil || cfg.Orders == nil || cfg.Page == nil || cfg.Crowd == nil || cfg.Log == nil {
		return nil, errors.New("front: Service, Bank, Orders, Page, Crowd and Log are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	b, err := openBook(ctx, cfg.Orders)
	if err != nil {
		return nil, fmt.Errorf("front: open the order book: %w", err)
	}
	f := &Front{cfg: cfg, book: b, stopped: make(chan struct{})}
	f.stop = sync.OnceFunc(func() { close(f.stopped) })
	f.service = newBackend("payment service", cfg.Log.connecting(cfg.Service), cfg)
	f.bank = newBackend("bank", cfg.Bank, cfg)
	return f, nil
}

// Handler returns all that the public address answers.
func (f *Front) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/demo/", inert(f.demo()))
	mux.Handle("GET /metrics", inert(http.HandlerFunc(f.showMetrics)))
	for _, path := range []string{
		"/payments", "/payments/", "/unsafe/", "/naive/", "/orders", "/orders/", "/.well-known/idempotency",
	} {
		mux.Handle(path, http.HandlerFunc(f.toService))
	}
	for _, path := range []string{"/charges", "/charges/"} {
		mux.Handle(path, http.HandlerFunc(f.toBank))
	}
	mux.Handle("/", f.cfg.Page)
	return mux
}

// inert keeps a browser from taking an answer of next for a page: there are
// names in it that clients chose.
func inert(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		next.ServeHTTP(w, r)
	})
}

// toService passes a request on, with the fault that it meets, if it is a
// payment.
func (f *Front) toService(w http.ResponseWriter, r *http.Request) {
	e := f.cfg.Log.begin(r)
	defer f.cfg.Log.end(e)
	body, problem := whole(w, r)
	if problem == nil {
		problem = f.admit(r, body, e)
	}
	if problem != nil {
		e.Status = problem.Status
		f.cfg.Log.tell(e, payments.LineRequestRefused, slog.Int("status", e.Status), slog.String("code", problem.Code))
		if e.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		problem.Write(w)
		return
	}
	f.cfg.Log.tell(e, payments.LineRequestPassed, slog.String("method", e.Method), slog.String("path", e.Path), slog.String("key", e.Key))
	f.service.pass(w, r, e)
}

// toBank passes a request on to the bank.
func (f *Front) toBank(w http.ResponseWriter, r *http.Request) {
	e := f.cfg.Log.begin(r)
	defer f.cfg.Log.end(e)
	if _, problem := whole(w, r); problem != nil {
		e.Status = problem.Status
		problem.Write(w)
		return
	}
	f.bank.pass(w, r, e)
}

// showMetrics passes on what the payment service counts. The log has no line
// of it: whoever asks for it asks again and again.
func (f *Front) showMetrics(w http.ResponseWriter, r *http.Request) {
	payments.StripInternal(r.Header)
	f.service.pass(w, r, &Entry{})
}

// whole reads the body, so that nothing is passed on of a request that does
// not arrive whole or is too large, and takes out what only the front may say.
func whole(w http.ResponseWriter, r *http.Request) ([]byte, *payments.Problem) {
	payments.StripInternal(r.Header)
	body, problem := payments.ReadBody(w, r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, problem
}

// admit notes the order of a payment request and takes the fault that it
// meets.
func (f *Front) admit(r *http.Request, body []byte, e *Entry) *payments.Problem {
	door, ok := payments.DoorOf(r)
	if !ok {
		return nil
	}
	e.Door = door
	if problem := oversize(r.Header); problem != nil {
		return problem
	}
	if problem := hopByHop(r.Header); problem != nil {
		return problem
	}
	own, asked, problem := faultAsked(r.Header)
	if problem != nil {
		return problem
	}
	if order, problem := payments.ParseOrder(r.Header.Get("Content-Type"), body); problem == nil {
		noted, err := f.book.note(context.WithoutCancel(r.Context()), door, r, order) // also when its client has hung up
		if err != nil {
			f.cfg.Logger.ErrorContext(r.Context(), "the order book cannot be written", "error", err)
			return payments.NewProblem(http.StatusServiceUnavailable, "service-unavailable", "the order book cannot be written; nothing was passed on")
		}
		e.noted = noted
	}
	if e.Fault = own; !asked {
		e.Fault = f.faults.take()
	}
	f.cfg.Log.note(e)
	if e.Fault == payments.RequestLost {
		f.cfg.Log.tell(e, payments.LineRequestLost, slog.String("key", e.Key))
		hangUp()
	}
	return nil
}

// hopByHop refuses what ends at a proxy and what a payment can do without: a
// header that Connection lists is not passed on, so that the service would see
// another request than the one whose order is noted, and a connection that
// changes its protocol is no request at all.
func hopByHop(h http.Header) *payments.Problem {
	refuse := func(field, detail string) *payments.Problem {
		p := payments.NewProblem(http.StatusBadRequest, "connection-invalid", detail)
		p.Field = field
		return p
	}
	if h.Get("Upgrade") != "" {
		return refuse("Upgrade", "a payment cannot change the protocol; leave Upgrade out")
	}
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "close", "keep-alive", "upgrade", "te":
			default:
				return refuse("Connection", fmt.Sprintf("Connection lists %q, which would not be passed on; it may list close, keep-alive, upgrade and te", name))
			}
		}
	}
	return nil
}

// faultAsked returns the fault that a request asks to meet, and whether it asks:
// who does not meets the one that is armed.
func faultAsked(h http.Header) (own payments.Fault, asked bool, problem *payments.Problem) {
	name := h.Get(payments.HeaderFault)
	if name == "" || name == payments.NoFaultName {
		return payments.NoFault, name != "", nil
	}
	if own, asked = payments.ParseFault(name); asked {
		return own, true, nil
	}
	problem = payments.NewProblem(http.StatusBadRequest, "fault-invalid",
		fmt.Sprintf("%s is %q; it must be %s or one of %s", payments.HeaderFault, cut(name), payments.NoFaultName, payments.FaultNames()))
	problem.Field = payments.HeaderFault
	return payments.NoFault, false, problem
}

// hangUp closes the client's connection without an answer.
func hangUp() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // the documented way to say so to net/http.
}
