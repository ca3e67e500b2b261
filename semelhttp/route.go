package semelhttp

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/fingerprint"
	"github.com/semel-dev/semel/internal/httpfield"
)

// Route says how one handler is protected. Zero means the default.
type Route struct {
	// Name is required, and must not change while records are kept: it is
	// part of the fingerprint.
	Name string
	// Path is what the published rules and the metrics call the route, such
	// as "/orders/{id}". Default "/", everything below.
	Path string
	// Methods that are protected, and published as that whether the mux serves
	// them or not. A request with any other method reaches the handler all the
	// same, unprotected: each of them runs, and semel.OperationFrom says that
	// there is no operation. So mount a handler for its methods only, such as
	// mux.Handle("POST /orders", h). GET, HEAD, OPTIONS, TRACE and CONNECT
	// never need a key and are refused here. Default POST and PATCH, which are
	// not idempotent by RFC 9110.
	Methods []string
	// KeyOptional lets a request without a key through, unprotected.
	KeyOptional bool
	// Mode is semel.Leased, semel.Joined or semel.Atomic.
	Mode semel.Mode
	// AllInTx declares that every effect of the handler is in its joined
	// transaction (M1). It goes with semel.Joined; semel.Atomic says so itself.
	AllInTx bool
	// Headers names the request headers that choose whose resource is meant
	// or what is done to it. They are part of the fingerprint; the header of
	// the key is none of them.
	Headers []string
	// Host makes the Host part of the fingerprint.
	Host bool
	// NotApplied lists statuses, 400 to 599, that the handler answers only
	// when nothing took effect: they release the key.
	NotApplied []int
	// MaxRequestBody and MaxReplyBody take the place of those of Config.
	MaxRequestBody int64
	MaxReplyBody   int64
	// FailOpen runs the handler without protection when the store cannot be
	// asked, where the default answers 503 and runs nothing. It is dangerous:
	// while the store is down every repeat runs again, and so does a request
	// that was done, or was begun elsewhere, before. What runs so is saved
	// nowhere, has no operation id and is cancelled with the client; the claim
	// that got no answer may have been won all the same, and then leaves the
	// key unknown. Choose it only where doing a thing twice costs less than
	// not doing it. Such a request is answered with Semel-Outcome unprotected,
	// logged at warn and told to the observer. It does not go with
	// semel.Joined and semel.Atomic, which have no transaction without the
	// store.
	FailOpen bool
	// BeforeReplay may refuse a saved reply to this caller, for instance
	// because a role was lost since (R27). The error's text is logged, and
	// not shown to the client.
	BeforeReplay func(*http.Request, semel.Record) error
}

// complete fills in the defaults and checks every field once.
func (r *Route) complete(cfg *Config) error {
	switch {
	case r.Name == "":
		return configError("Route.Name", "is required: a name that stays the same when the path changes")
	case r.Path == "":
		r.Path = "/"
	case !strings.HasPrefix(r.Path, "/"):
		return r.error("Path", fmt.Sprintf("is %q; it must start with a slash", r.Path))
	case strings.ContainsFunc(r.Path, func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }):
		return r.error("Path", fmt.Sprintf("is %q; no path has spaces or control characters", r.Path))
	}
	if err := r.checkMethods(); err != nil {
		return err
	}
	for _, status := range r.NotApplied {
		if status < 400 || status > 599 {
			return r.error("NotApplied", fmt.Sprintf("has %d; only statuses from 400 to 599 can say that nothing took effect", status))
		}
	}
	if r.AllInTx && r.Mode != semel.Joined {
		return r.error("AllInTx", "goes with Mode semel.Joined only")
	}
	if r.FailOpen && r.inTx() {
		return r.error("FailOpen", "does not go with Mode semel.Joined or semel.Atomic: without the store there is no transaction")
	}
	for _, name := range r.Headers {
		if http.CanonicalHeaderKey(name) == cfg.KeyHeader {
			return r.error("Headers", fmt.Sprintf("has %q, which carries the key: its two spellings are one key, and would be two requests", name))
		}
	}
	return r.checkLimits(cfg)
}

// inTx reports whether the handler works in a transaction of the store's.
func (r *Route) inTx() bool { return r.Mode != semel.Leased }

func (r *Route) checkMethods() error {
	if len(r.Methods) == 0 {
		r.Methods = []string{http.MethodPost, http.MethodPatch}
		return nil
	}
	r.Methods = slices.Clone(r.Methods)
	for i, method := range r.Methods {
		switch {
		case slices.Contains(r.Methods[:i], method):
			return r.error("Methods", fmt.Sprintf("has %s twice", method))
		case !httpfield.IsToken(method) || strings.ToUpper(method) != method:
			return r.error("Methods", fmt.Sprintf("has %q, which is not a method in capitals", method))
		case slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodConnect}, method):
			return r.error("Methods", fmt.Sprintf("has %s, which never needs a key", method))
		}
	}
	return nil
}

func (r *Route) checkLimits(cfg *Config) error {
	for _, limit := range []struct {
		name  string
		field *int64
		def   int64
	}{
		{"MaxRequestBody", &r.MaxRequestBody, cfg.MaxRequestBody},
		{"MaxReplyBody", &r.MaxReplyBody, cfg.MaxReplyBody},
	} {
		if *limit.field == 0 {
			*limit.field = limit.def
		}
		if *limit.field < 0 || *limit.field > cfg.ByteBudget {
			return r.error(limit.name, fmt.Sprintf("is %d bytes; it must be positive and at most ByteBudget (%d)", *limit.field, cfg.ByteBudget))
		}
	}
	return nil
}

func (r *Route) error(field, problem string) error {
	return configError(fmt.Sprintf("Route %q: %s", r.Name, field), problem)
}

// protected is a handler behind the middleware.
type protected struct {
	mw     *Middleware
	next   http.Handler
	route  Route
	prints *fingerprint.Set
}

var _ http.Handler = (*protected)(nil)

// Protect returns next behind the middleware, as the route that is described.
// Requests with other methods, without a key where it is optional, and gRPC go
// straight to next: they run each time, and semel.OperationFrom returns false.
// Errors match semel.ErrConfig and name the field.
func (m *Middleware) Protect(next http.Handler, route Route) (http.Handler, error) {
	if next == nil {
		return nil, configError("next", "is required: the handler to protect")
	}
	if err := route.complete(&m.cfg); err != nil {
		return nil, err
	}
	place := fmt.Sprintf("Route %q", route.Name)
	if err := m.guard.CheckMode(route.Mode); err != nil {
		return nil, configErrorOf(place, err)
	}
	current := fingerprint.Config{Host: route.Host, Headers: route.Headers}
	prints, err := fingerprint.NewSet(current, m.cfg.OlderFingerprints...)
	if err != nil {
		return nil, configErrorOf(place, err)
	}
	p := &protected{mw: m, next: next, route: route, prints: prints}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.routes {
		if other.route.Name == route.Name {
			return nil, route.error("Name", "is taken by another route of this Middleware")
		}
	}
	m.routes = append(m.routes, p)
	return p, nil
}

// applies reports whether r is to be protected.
func (p *protected) applies(r *http.Request) bool {
	if !p.covers(r) || isGRPC(r) {
		return false
	}
	return !p.route.KeyOptional || len(r.Header[p.mw.cfg.KeyHeader]) > 0
}

// covers reports whether r has one of the route's methods.
func (p *protected) covers(r *http.Request) bool { return slices.Contains(p.route.Methods, r.Method) }

// observe tells the guard's observer what became of r.
func (p *protected) observe(r *http.Request, e semel.Event) {
	e.Kind, e.Route = semel.EventRequest, p.route.Path
	p.mw.guard.Observe(r.Context(), e)
}

func isGRPC(r *http.Request) bool {
	const media = "application/grpc" // and whatever follows: -web, +proto
	sent := r.Header.Get("Content-Type")
	return len(sent) >= len(media) && strings.EqualFold(sent[:len(media)], media)
}

// ServeHTTP lets r through, refuses it, runs it once or answers it from its
// record.
func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.applies(r) {
		w.Header().Set(headerOutcome, outcomeUnprotected)
		if p.covers(r) {
			p.observe(r, semel.Event{Outcome: outcomeUnprotected})
		}
		p.next.ServeHTTP(w, r)
		return
	}
	newExchange(p, w, r).serve()
}
