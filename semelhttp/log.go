package semelhttp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/semel-dev/semel"
)

// digestLength is how many hexadecimal digits of a digest are logged.
const digestLength = 12

// log writes the one line of this request. It has neither bodies nor scope,
// and the key only if that was asked for.
func (x *exchange) log() {
	ctx, logger, level := x.request.Context(), x.p.mw.cfg.Logger, x.level()
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("route", x.p.route.Name), slog.String("outcome", x.outcome))
	if x.status != 0 { // a handler that ran unprotected, or panicked, leaves it to others
		attrs = append(attrs, slog.Int("status", x.status))
	}
	if x.key != "" {
		attrs = append(attrs, slog.String("idempotency_key", x.loggedKey()))
	}
	if x.scope != "" {
		attrs = append(attrs, slog.String("scope_digest", digest(x.scope)))
	}
	if !x.record.OperationID.IsZero() {
		attrs = append(attrs, slog.String("operation_id", x.record.OperationID.String()), slog.Int64("attempt", x.record.Attempt))
	}
	if x.takeover {
		attrs = append(attrs, slog.Bool("takeover", true))
	}
	attrs = append(attrs, slog.Duration("duration", time.Since(x.began)))
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	logger.LogAttrs(ctx, level, "semel: request", attrs...)
}

// logPanic keeps the stack of the handler that panics now.
func (x *exchange) logPanic(ctx context.Context) {
	op, _ := semel.OperationFrom(ctx)
	x.p.mw.cfg.Logger.LogAttrs(ctx, slog.LevelError, "semel: handler panicked",
		slog.String("route", x.p.route.Name), slog.String("operation_id", op.ID.String()), slog.Int64("attempt", op.Attempt),
		slog.String("panic", fmt.Sprint(x.panicked)), slog.String("stack", string(debug.Stack())))
}

// level is error for a fault of the store, warn where somebody may have to
// look, info for what ran or looks like a client's mistake with keys, and debug
// for the rest. docs/http.md has the list.
func (x *exchange) level() slog.Level {
	switch {
	case x.outcome == outcomeUnprotected:
		return slog.LevelWarn
	case errors.Is(x.cause, semel.ErrStoreUnavailable):
		return slog.LevelError
	case x.takeover, x.outcome == outcomeExecuted && x.problem != "", x.outcome == outcomeUnknown, x.status >= 500:
		return slog.LevelWarn
	case x.outcome == outcomeExecuted, x.outcome == outcomeKeyReused, x.outcome == outcomeReleased && x.record.Attempt > 0:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (x *exchange) loggedKey() string {
	if x.p.mw.cfg.LogKeys {
		return x.key
	}
	return digest(x.key)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digestLength]
}
