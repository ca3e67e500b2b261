package check

import (
	"context"
	"net/http"
	"slices"

	"github.com/semel-dev/semel/internal/wellknown"
)

var methodCases = []Case{
	{
		ID: "method/get", Level: Practice, Title: "A key on a GET does no harm",
		Sends:   "A GET of the address with a key.",
		Expects: "What a GET without a key gets.",
		Clause:  "RFC 9110 section 9.2.1: safe methods need no key.",
		Costs:   "A stored reply to a GET is an old balance.",
		Fix:     "Leave safe methods alone.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall().with(nil)
			c.method = http.MethodGet
			var with, without Exchange
			seen := s.gets(ctx, func() []Exchange {
				with, without = s.send(ctx, c), s.send(ctx, c.under())
				return []Exchange{with, without}
			})
			if seen.executions > 0 && s.run.target.Method != http.MethodGet {
				return broken(seen.evidence, "a GET is carried out as an operation: %d with a key, %d without", with.Status, without.Status).since(seen.how)
			}
			return heldIf(with.Status == without.Status, "%d with a key, %d without", with.Status, without.Status)
		},
	},
	{
		ID: "method/get-executes", Level: Must, Title: "A GET executes nothing",
		Sends:   "GETs of the address and of " + wellknown.Path + ", each twice with a new key and once without.",
		Expects: "No execution: what is counted stays, and no reply names a new one.",
		Clause:  "RFC 9110 section 9.2.1: a GET is safe, so anybody may send it, and send it again.",
		Costs:   "Browsers, proxies and crawlers send a GET whenever they like, and without a key: each takes the money.",
		Fix:     "Route the operation by its method and its path: answer another method with 405, another path with 404.",
		run: func(ctx context.Context, s *session) outcome {
			if s.run.target.Method == http.MethodGet {
				return skip("the operation is a GET itself")
			}
			for _, address := range []string{s.run.target.URL, s.run.wellKnown()} {
				if o := s.getsOf(ctx, address); o.status != Pass {
					return o
				}
			}
			return held(s.run.strength(), "no GET was carried out")
		},
	},
	{
		ID: "method/other", Level: Must, Title: "Another method under a used key is not given the reply",
		Sends:   "A request, and the same as PATCH (a PATCH as POST) under the same key.",
		Expects: "No reply of the first operation.",
		Clause:  "N22, N26: draft section 2.7.",
		Costs:   "A change that was not made is answered as made.",
		Fix:     "Take the method into the scope or the digest of a key.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			other := c
			other.method = http.MethodPatch
			if c.method == http.MethodPatch {
				other.method = http.MethodPost
			}
			first, x := s.send(ctx, c), s.send(ctx, other)
			switch {
			case !first.succeeded():
				return setupFailed("the first request got %s", first.result())
			case !x.succeeded():
				return s.run.refusal(x)
			case s.run.marks.compare(first, x) == otherExecution:
				return held(Identity, "it is an operation of its own")
			}
			return broken(s.run.strength(), "%s got %s", other.method, x.result())
		},
	},
}

// getsOf sends GETs of an address, and holds when they execute nothing.
func (s *session) getsOf(ctx context.Context, address string) outcome {
	get := func() call {
		c := s.run.newCall().with(nil)
		c.method, c.url = http.MethodGet, address
		return c
	}
	var got []Exchange
	seen := s.gets(ctx, func() []Exchange {
		got = []Exchange{s.send(ctx, get()), s.send(ctx, get()), s.send(ctx, get().under())}
		return got
	})
	switch {
	case seen.unclear != "":
		return inconclusive("GET %s: %s", address, seen.unclear)
	case seen.executions > 0:
		return broken(seen.evidence, "%s of %d GETs of %s: %s", executions(seen.executions), len(got), address, tally(got)).since(seen.how)
	}
	return held(seen.evidence, "no GET was carried out")
}

// gets counts the executions that GETs cause: by what is counted, or by replies
// that name one. Such a reply is new, and has the form of those to the operation:
// a page that only has a number of its own is none.
func (s *session) gets(ctx context.Context, do func() []Exchange) sighting {
	r := s.run
	if r.target.Observe != nil {
		return s.watch(ctx, do)
	}
	kinds := []Exchange{r.executed}
	for _, x := range do() {
		isKnown := func(known Exchange) bool { return r.marks.compare(known, x) != otherExecution }
		if x.succeeded() && !slices.ContainsFunc(kinds, isKnown) {
			kinds = append(kinds, x)
		}
	}
	kinds = kinds[1:]
	switch {
	case len(kinds) < 2: // one may have been there, and be shown
		return sighting{evidence: r.strength()}
	case !sameForm(r.executed, kinds[0]):
		return sighting{unclear: "replies hold something new each time, as after an execution: only counting effects tells whether it was one"}
	}
	return sighting{executions: len(kinds), evidence: Identity, how: r.marks.tellApart(kinds)}
}

// sameForm reports whether a reply has all that another one has.
func sameForm(of, x Exchange) bool {
	has := leaves(x)
	for name := range leaves(of) {
		if _, found := has[name]; !found {
			return false
		}
	}
	return true
}
