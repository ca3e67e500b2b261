package payments

import (
	"context"
	"log/slog"
	"net/http"
)

// requestKey finds the request's number in its context.
type requestKey struct{}

// Numbered puts the front's number of a request into its context, from where
// every log line gets it: see NumberedLines.
func Numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), requestKey{}, r.Header.Get(InternalRequest))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

var _ slog.Handler = NumberedLines{}

// NumberedLines is a log handler that adds the request's number to each line.
type NumberedLines struct{ slog.Handler }

// Handle adds the number and passes the line on.
func (l NumberedLines) Handle(ctx context.Context, rec slog.Record) error {
	if n, ok := ctx.Value(requestKey{}).(string); ok {
		rec.AddAttrs(slog.String("request", n))
	}
	return l.Handler.Handle(ctx, rec)
}

// WithAttrs returns a handler with more attributes.
func (l NumberedLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return NumberedLines{l.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler with a group.
func (l NumberedLines) WithGroup(name string) slog.Handler {
	return NumberedLines{l.Handler.WithGroup(name)}
}
