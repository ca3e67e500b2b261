package check

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

var scopeCases = []Case{
	{
		ID: "scope/tenant", Level: Must, Title: "One caller's key says nothing to another",
		Sends:   "The same request with the same key from two callers.",
		Expects: "Two executions, or a refusal: never the first caller's reply.",
		Clause:  "N29: draft section 5.",
		Costs:   "Who guesses a key reads another customer's payment, and whose key is taken cannot pay.",
		Fix:     "Look keys up together with what only the server knows of the caller.",
		run: func(ctx context.Context, s *session) outcome {
			t := s.run.target
			if t.TenantHeader == "" {
				return skip("no field was given that tells callers apart")
			}
			c := s.run.newCall()
			var a, b Exchange
			seen := s.watch(ctx, func() []Exchange {
				a = s.send(ctx, c.set(t.TenantHeader, t.Tenants[0]))
				b = s.send(ctx, c.set(t.TenantHeader, t.Tenants[1]))
				return []Exchange{a, b}
			})
			switch {
			case !a.succeeded():
				return setupFailed("the first caller's request got %s", a.result())
			case b.refused():
				return held(s.run.strength(), "the second caller is refused with %d", b.Status)
			case seen.unclear != "":
				return inconclusive("%s", seen.unclear)
			case seen.evidence == Bytes:
				return inconclusive("replies say nothing of the execution that they come from")
			case seen.executions == 2:
				return held(seen.evidence, "each caller has an operation of its own")
			}
			return broken(seen.evidence, "the second caller was given the first one's reply: %s", b.result())
		},
	},
	{
		ID: "scope/authorization", Level: Must, Title: "A reply is not given again to who may not ask",
		Sends:   "A request, and the same with the same key without what proves who the caller is. That a new request is refused without it is seen first.",
		Expects: "401 or 403.",
		Clause:  "N29: draft section 5.",
		Costs:   "A revoked credential still reads old replies.",
		Fix:     "Authorize each request before its key is looked up, replays too.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if !s.run.authorized() {
				return skip("requests carry nothing that proves who the caller is")
			}
			anybody := s.run.newCall()
			anybody.anonymous = true
			if x := s.send(ctx, anybody); x.succeeded() {
				return skip("the operation is open to anybody: without a credential it got %d", x.Status)
			}
			first := s.send(ctx, c)
			c.anonymous = true
			x := s.send(ctx, c)
			switch {
			case !first.succeeded():
				return setupFailed("the first request got %s", first.result())
			case x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden:
				return held(s.run.strength(), "refused with %d", x.Status)
			case x.redirects() && !x.succeeded():
				return held(s.run.strength(), "sent elsewhere with %d, where 401 or 403 is usual", x.Status)
			case x.refused():
				return held(s.run.strength(), "refused with %d, where 401 or 403 is usual", x.Status)
			}
			return broken(s.run.strength(), "it got %s", x.result())
		},
	},
}

// authorized reports whether requests carry a credential.
func (r *run) authorized() bool {
	if r.target.AuthorizeFunc != nil {
		return true
	}
	for name := range r.target.Header {
		if isSecret(name) {
			return true
		}
	}
	return false
}

// withQuery adds to the query of an address.
func withQuery(address, query string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // it was parsed before the run
	}
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery = query
	return u.String()
}

var headerCases = []Case{
	sameField("header/location", Should, "Location", "A client that follows it finds another resource, or none."),
	sameField("header/content-type", Should, "Content-Type", "A client cannot read the reply that it is given again."),
	sameField("header/content-language", Practice, "Content-Language", "A reply in one language is announced in another."),
	{
		ID: "header/set-cookie", Level: Practice, Title: "A repetition sets no cookie",
		Sends: "The same request twice.", Expects: "No Set-Cookie of the first reply in the second.",
		Clause: "RFC 6265 gives cookies to one client at one time; the draft says nothing.",
		Costs:  "An old session is put back in place, perhaps somebody else's.",
		Fix:    "Leave Set-Cookie out of what is kept.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			again := p.again.ReplyHeader.Values("Set-Cookie")
			for _, cookie := range p.first.ReplyHeader.Values("Set-Cookie") {
				if slices.Contains(again, cookie) {
					return broken(Bytes, "the second reply sets the first one's cookie again")
				}
			}
			return held(Bytes, "no cookie is set again")
		},
	},
	{
		ID: "header/cacheable", Level: Practice, Title: "Replies are not for shared caches",
		Sends: "The same request twice.", Expects: "No Cache-Control: public in the second reply.",
		Clause: "RFC 9111 section 3; the draft says nothing.",
		Costs:  "A cache that answers for the API hides that an operation was done.",
		Fix:    "Send Cache-Control: no-store with operations that move money.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			control := p.again.ReplyHeader.Get("Cache-Control")
			return heldIf(!strings.Contains(control, "public"), "Cache-Control: %q", control)
		},
	},
}

// sameField is the case of a field of the reply that is the same in its replay.
func sameField(id string, level Level, name, costs string) Case {
	return Case{
		ID: id, Level: level, Title: "A repetition has the " + name + " of the first",
		Sends: "The same request twice.", Expects: "The same " + name + " in both replies.",
		Clause: "N19: draft section 2.6.", Costs: costs,
		Fix: "Keep " + name + " with the reply.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			first, again := p.first.ReplyHeader.Get(name), p.again.ReplyHeader.Get(name)
			if first == "" && again == "" {
				return skip("replies have no %s", name)
			}
			return heldIf(first == again, "%q first, then %q", first, again)
		},
	}
}
