package check

import (
	"context"
	"net/http"
)

var failureCases = []Case{
	{
		ID: "failure/refused-again", Level: Should, Title: "A refused request is refused again",
		Sends:   "A request that the API refuses (--refused-data), twice under one key.",
		Expects: "The same status both times.",
		Clause:  "N19: draft section 2.6, success or error.",
		Costs:   "A declined payment that succeeds on an automatic retry is one that nobody asked for.",
		Fix:     "Keep refusals that are final with their key, as the documentation says.",
		run: func(ctx context.Context, s *session) outcome {
			c, stop := s.failing(s.run.target.RefusedBody, "refuses")
			if stop != nil {
				return *stop
			}
			first, again := s.send(ctx, c), s.send(ctx, c)
			if !first.refused() {
				return setupFailed("the body that is to be refused got %s", first.result())
			}
			return heldIf(first.Status == again.Status, "%d first, then %d", first.Status, again.Status)
		},
	},
	{
		ID: "failure/refused-then-good", Level: Info, Title: "What a good request does under the key of a refused one",
		Sends:   "A request that the API refuses (--refused-data), and then the good one under its key.",
		Expects: "It is executed, or refused because the key is used.",
		Clause:  "N22, N27: draft section 2.7. Both ways are in use.",
		Costs:   "A client must know which: it needs a new key, or must not take one.",
		Fix:     "Say in the documentation which refusals use a key up.",
		run: func(ctx context.Context, s *session) outcome {
			c, stop := s.failing(s.run.target.RefusedBody, "refuses")
			if stop != nil {
				return *stop
			}
			return s.afterFailure(ctx, c)
		},
	},
	{
		ID: "failure/malformed-then-good", Level: Info, Title: "What a good request does under the key of a malformed one",
		Sends:   "A body that is no JSON, and then the good request under its key.",
		Expects: "It is executed, or refused because the key is used.",
		Clause:  "N27: draft section 2.7.",
		Costs:   "A key that is used up by a request nobody could read is a payment that cannot be made.",
		Fix:     "Refuse what cannot be read before the key is claimed.",
		run: func(ctx context.Context, s *session) outcome {
			return s.afterFailure(ctx, s.run.newCall().with([]byte("{")))
		},
	},
	{
		ID: "failure/error-again", Level: Must, Title: "An operation that failed is not executed twice",
		Sends:   "A request that the API cannot carry out (--failing-data), three times under one key.",
		Expects: "One execution at most: what failed has not taken effect, or takes effect once.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "A 500 after the charge, and the retry charges again.",
		Fix:     "Give the work an operation id that stays the same from try to try, and hand it on to whoever is called.",
		run: func(ctx context.Context, s *session) outcome {
			c, stop := s.failing(s.run.target.FailingBody, "cannot carry out")
			if stop != nil {
				return *stop
			}
			var got []Exchange
			seen := s.watch(ctx, func() []Exchange { got = s.times(ctx, 3, c); return got })
			switch {
			case got[0].Status < http.StatusInternalServerError:
				return setupFailed("the body that cannot be carried out got %s", got[0].result())
			case seen.evidence != Counted:
				return inconclusive("what a failed request did can only be counted")
			case seen.executions > 1:
				return broken(Counted, "%s of %d requests", executions(seen.executions), seen.requests)
			}
			return held(Counted, "%s of %d requests", executions(seen.executions), seen.requests)
		},
	},
}

// failing is an operation of the given body, if the user gave one.
func (s *session) failing(body []byte, what string) (call, *outcome) {
	if len(body) == 0 {
		o := skip("no body was given that the API %s", what)
		return call{}, &o
	}
	return s.run.newCallOf(body), nil
}

// afterFailure tells what the good request does under the key of a bad one.
func (s *session) afterFailure(ctx context.Context, bad call) outcome {
	if first := s.send(ctx, bad); !first.refused() {
		return setupFailed("the bad request got %s", first.result())
	}
	good := s.run.newCall().under(bad.keys...)
	x := s.send(ctx, good)
	if x.succeeded() {
		return told("a refused request leaves its key free: the good one is executed under it")
	}
	return told("a refused request uses its key up: the good one gets %d under it", x.Status)
}
