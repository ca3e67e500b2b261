package semelhttp_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// handlers are the handlers that golden cases name.
func (b *bench) handlers() map[string]http.HandlerFunc {
	answer := func(status int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			b.ran()
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(status)
			if status != http.StatusNoContent && status != http.StatusNotModified {
				io.WriteString(w, "the handler's own words\n")
			}
		}
	}
	say := func(declare func(r *http.Request), then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			declare(r)
			then(w, r)
		}
	}
	return map[string]http.HandlerFunc{
		"created": func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			b.created(w, r)
		},
		"slow": func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			b.created(w, r)
		},
		"nothing":       func(http.ResponseWriter, *http.Request) { b.ran() },
		"no-content":    answer(http.StatusNoContent),
		"not-modified":  answer(http.StatusNotModified, "ETag", `"v1"`),
		"see-other":     answer(http.StatusSeeOther, "Location", "/orders/1"),
		"declined":      answer(http.StatusPaymentRequired),
		"invalid":       answer(http.StatusUnprocessableEntity),
		"unauthorized":  answer(http.StatusUnauthorized, "WWW-Authenticate", "Bearer"),
		"forbidden":     answer(http.StatusForbidden),
		"throttled":     answer(http.StatusTooManyRequests, "Retry-After", "7"),
		"conflict":      answer(http.StatusConflict),
		"busy":          answer(http.StatusConflict, "Retry-After", "7"),
		"fails":         answer(http.StatusInternalServerError),
		"unavailable":   answer(http.StatusServiceUnavailable, "Retry-After", "7"),
		"client-closed": answer(499),
		"brotli":        answer(http.StatusCreated, "Content-Encoding", "br", "Vary", "Accept-Encoding"),
		"session": answer(http.StatusCreated,
			"Set-Cookie", "sid=old; HttpOnly", "Authentication-Info", "x", "Connection", "X-Hop", "X-Hop", "one",
			"Keep-Alive", "timeout=5", "Age", "7", "X-Kept", "a", "X-Kept", "b"),
		"misnamed": func(w http.ResponseWriter, r *http.Request) {
			for i, name := range []string{"Content-Type:", "", "X\nY", "X Y", "Ünicode"} {
				w.Header()[name] = []string{strconv.Itoa(i)}
			}
			w.Header()["X-Empty"] = nil
			answer(http.StatusCreated, "X-Kept", "a")(w, r)
		},
		"forger":        answer(http.StatusCreated, "Idempotent-Replayed", "true", "Semel-Outcome", "replayed"),
		"inner-problem": func(w http.ResponseWriter, _ *http.Request) { b.ran(); b.mw.WriteProblem(w, "step-unsettled", "") },
		"inner-busy": func(w http.ResponseWriter, _ *http.Request) {
			b.ran()
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"code":"in-progress","retry":true}`)
		},
		"final":          say(func(r *http.Request) { semel.DeclareFinal(r.Context()) }, answer(http.StatusBadGateway)),
		"not-applied":    say(func(r *http.Request) { semel.DeclareNotApplied(r.Context()) }, answer(http.StatusInternalServerError)),
		"stored-failure": say(func(r *http.Request) { semel.Commit(r.Context()) }, answer(http.StatusServiceUnavailable)),
		"inner-outcome":  answer(http.StatusConflict, "Semel-Outcome", "in-progress"),
		"stored":         say(func(r *http.Request) { semel.Commit(r.Context()) }, answer(http.StatusPaymentRequired)),
		"no-status": func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			b.ran()
			semel.DeclareFinal(r.Context())
			w.WriteHeader(1000)
		},
		"panics": func(http.ResponseWriter, *http.Request) {
			b.ran()
			panic("out of paper") //nolint:forbidigo // that is the case.
		},
		"aborts": func(http.ResponseWriter, *http.Request) {
			b.ran()
			panic(http.ErrAbortHandler) //nolint:forbidigo // that is the case.
		},
		"short": func(w http.ResponseWriter, _ *http.Request) {
			b.ran()
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "cut off")
		},
		"large": func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			b.ran()
			for range 4 {
				io.WriteString(w, strings.Repeat("x", 20)+"\n")
			}
		},
		"flushes": func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			b.ran()
			io.WriteString(w, "one\n")
			http.NewResponseController(w).Flush()
			io.WriteString(w, "two\n")
		},
		"flushes-then-panics": func(w http.ResponseWriter, _ *http.Request) {
			b.ran()
			io.WriteString(w, "one\n")
			http.NewResponseController(w).Flush()
			panic("out of paper") //nolint:forbidigo // that is the case.
		},
		"trails": func(w http.ResponseWriter, _ *http.Request) {
			b.ran()
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "body\n")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		},
		"hints": func(w http.ResponseWriter, _ *http.Request) {
			b.ran()
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "no\n")
		},
	}
}
