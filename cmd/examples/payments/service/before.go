package service

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// understood refuses a payment that cannot be understood before its key is
// claimed, so that the corrected request may carry the same key. What Semel
// refuses by itself, a missing key or a body over the limit, is left to it.
func understood(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(payments.HeaderKey) == "" {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, payments.MaxBody+1))
		if err == nil && len(body) <= payments.MaxBody {
			if _, problem := payments.ParseOrder(r.Header.Get("Content-Type"), body); problem != nil {
				problem.Write(w)
				return
			}
		}
		var after io.Reader = r.Body
		if err != nil {
			after = broken{err} // net/http reports it once, and says EOF from then on
		}
		r.Body = rest{io.MultiReader(bytes.NewReader(body), after), r.Body}
		next.ServeHTTP(w, r)
	})
}

// rest is a body of which a part has been read already.
type rest struct {
	io.Reader
	io.Closer
}

// broken is where a body broke off.
type broken struct{ err error }

// Read says why.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// requestKey finds the request's number in its context.
type requestKey struct{}

// numbered puts the front's number of a request into its context, from where
// every log line gets it: see Lines.
func numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), requestKey{}, r.Header.Get(payments.InternalRequest))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

var _ slog.Handler = Lines{}

// Lines is a log handler that adds the request's number to each line.
type Lines struct{ slog.Handler }

// Handle adds the number and passes the line on.
func (l Lines) Handle(ctx context.Context, rec slog.Record) error {
	if n, ok := ctx.Value(requestKey{}).(string); ok {
		rec.AddAttrs(slog.String("request", n))
	}
	return l.Handler.Handle(ctx, rec)
}

// WithAttrs returns a handler with more attributes.
func (l Lines) WithAttrs(attrs []slog.Attr) slog.Handler { return Lines{l.Handler.WithAttrs(attrs)} }

// WithGroup returns a handler with a group.
func (l Lines) WithGroup(name string) slog.Handler { return Lines{l.Handler.WithGroup(name)} }
