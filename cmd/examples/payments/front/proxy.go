package front

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// startWithin is how long a request waits for a process that is being started.
const startWithin = 8 * time.Second

// errReplyLost makes the proxy drop the answer that has just arrived.
var errReplyLost = errors.New("the reply is lost on the way")

// dialError is a failure before anything was sent.
type dialError struct{ error }

// entryKey finds a request's log entry in its context.
type entryKey struct{}

// backend is the way to one process.
type backend struct{ proxy *httputil.ReverseProxy }

func newBackend(name string, dial DialFunc, cfg Config) backend {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, startWithin)
			defer cancel()
			conn, err := dial(ctx)
			if err != nil {
				return nil, dialError{err}
			}
			return conn, nil
		},
		// net/http sends a request again only on a connection that it has
		// used before (R20), so none is used twice.
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
	return backend{&httputil.ReverseProxy{
		Rewrite:        forward,
		Transport:      transport,
		ModifyResponse: func(resp *http.Response) error { return received(resp, cfg.Log) },
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			e := entryOf(r)
			if !errors.As(err, new(dialError)) {
				e.cut(err, cfg.Log)
				hangUp()
			}
			e.Status = http.StatusServiceUnavailable
			cfg.Log.tell(e, payments.LineReplyPassed, slog.Int("status", e.Status))
			w.Header().Set("Retry-After", "1")
			payments.NewProblem(e.Status, "service-unavailable", "the "+name+" is not up; nothing was sent to it").Write(w)
		},
	}}
}

func entryOf(r *http.Request) *Entry {
	e, _ := r.Context().Value(entryKey{}).(*Entry)
	return e
}

// pass sends r on and the answer back.
func (b backend) pass(w http.ResponseWriter, r *http.Request, e *Entry) {
	b.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)))
}

// forward makes the request to the process: the client's own, with the number
// and the fault that the front gives it, and the number of its order.
func forward(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "http", "process"
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	e := entryOf(p.In)
	p.Out.Header.Set(payments.InternalRequest, strconv.FormatInt(e.ID, 10))
	if e.noted != 0 {
		p.Out.Header.Set(payments.InternalOrder, strconv.FormatInt(e.noted, 10))
	}
	if e.Fault != payments.NoFault {
		p.Out.Header.Set(payments.InternalFault, string(e.Fault))
	}
}

// cut says why there is no answer to e.
func (e *Entry) cut(err error, log *Log) {
	switch {
	case errors.Is(err, errReplyLost): // received has said it
	case errors.Is(err, context.Canceled):
		log.tell(e, payments.LineClientGone)
	default:
		e.broke = time.Now()
		log.tell(e, payments.LineBroke)
	}
}

// received looks at the answer before it goes to the client.
func received(resp *http.Response, log *Log) error {
	e := entryOf(resp.Request)
	e.Outcome = cut(resp.Header.Get("Semel-Outcome"))
	attrs := []slog.Attr{slog.Int("status", resp.StatusCode), slog.String("outcome", e.Outcome)}
	if resp.Header.Get("Idempotent-Replayed") == "true" {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	if e.Fault == payments.ReplyLost {
		log.tell(e, payments.LineReplyLost, attrs...)
		return errReplyLost
	}
	log.tell(e, payments.LineReplyPassed, attrs...)
	e.Status = resp.StatusCode
	return nil
}
