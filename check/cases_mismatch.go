package check

import (
	"context"
	"net/http"
)

const (
	mismatchSends = "A request, another body under the same key, and the first request again. The other body is first tried under a key of its own, so that its refusal is known to be for the key."
	mismatchFix   = "Keep a digest of the request with the key, compare it before the reply is given again, and answer 422 when it differs."
)

var mismatchCases = []Case{
	{
		ID: "mismatch/executes", Level: Must, Title: "Another body under a used key executes nothing",
		Sends: mismatchSends, Expects: "One execution.",
		Clause: "N3, N22, N26: draft sections 2.2 and 2.7.",
		Costs:  "A client whose bug uses a key again pays twice under one key, and its books know of one payment.",
		Fix:    mismatchFix,
		run: func(ctx context.Context, s *session) outcome {
			m, stop := s.mismatch(ctx)
			if stop != nil {
				return *stop
			}
			return m.seen.once("the other body was not executed")
		},
	},
	{
		ID: "mismatch/refused", Level: Must, Title: "Another body under a used key is refused",
		Sends: mismatchSends, Expects: "An error, not the reply of the first request.",
		Clause: "N26: draft section 2.7, the request fails with one of its errors.",
		Costs:  "The caller is told that a payment it never made was done, and the one it asked for was not.",
		Fix:    mismatchFix,
		run: func(ctx context.Context, s *session) outcome {
			m, stop := s.mismatch(ctx)
			switch {
			case stop != nil:
				return *stop
			case m.other.succeeded():
				return broken(s.run.strength(), "the other body was answered with %s", m.other.result())
			}
			return s.run.refusal(m.other)
		},
	},
	{
		ID: "mismatch/status", Level: Should, Title: "The refusal is a 422",
		Sends: mismatchSends, Expects: "422 Unprocessable Content.",
		Clause: "N22: draft section 2.7.",
		Costs:  "A client library cannot tell a wrong key from a wrong payment.",
		Fix:    "Answer 422. Some APIs use 400 or 409; say so in the documentation if it must stay.",
		run: func(ctx context.Context, s *session) outcome {
			m, stop := s.mismatch(ctx)
			switch {
			case stop != nil:
				return *stop
			case m.other.Status != http.StatusUnprocessableEntity:
				return broken(Bytes, "got %d", m.other.Status)
			}
			return held(Bytes, "422")
		},
	},
	{
		ID: "mismatch/no-harm", Level: Must, Title: "A refusal does not harm the first operation",
		Sends: mismatchSends, Expects: "The first request, sent again after the refusal, is still known.",
		Clause: "N19: draft section 2.6.",
		Costs:  "One wrong request frees or overwrites the key, and the next honest retry is charged again.",
		Fix:    "Write nothing when a request does not fit its key.",
		run: func(ctx context.Context, s *session) outcome {
			m, stop := s.mismatch(ctx)
			switch {
			case stop != nil:
				return *stop
			case !m.after.succeeded():
				return broken(Bytes, "the first request, sent again, got %s", m.after.result())
			}
			return s.run.sight([]Exchange{m.first, m.after}).once("the first reply is given again after the refusal")
		},
	},
	{
		ID: "mismatch/at-once", Level: Must, Title: "Two bodies under one key at once are one execution",
		Sends:   "Two different bodies under one new key at the same time.",
		Expects: "One execution at most.",
		Clause:  "N3, N26: draft sections 2.2 and 2.7.",
		Costs:   "A check that looks before it writes lets both through, and both are paid.",
		Fix:     "Write the digest with the claim of the key, in one statement.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			body, err := s.run.otherBody(c)
			if err != nil {
				return skip("%v", err)
			}
			var got []Exchange
			seen := s.watch(ctx, func() []Exchange {
				got = s.sendAtOnce(ctx, []call{c, c.with(body)})
				return append(got, s.settled(ctx, c), s.settled(ctx, c.with(body)), s.settled(ctx, c))
			})
			return seen.onceOf(got, "one of two bodies was executed")
		},
	},
	{
		ID: "mismatch/query", Level: Info, Title: "What another query under a used key does",
		Sends:   "A request, and the same with ?semel-check=1 under the same key.",
		Expects: "A refusal, or the first reply: an API may say that the query is no part of the request.",
		Clause:  "N9, N10: draft section 2.4 leaves open what makes a request another one.",
		Costs:   "Where the query chooses what is done, a key must not serve two of them.",
		Fix:     "Take method, path and query into the digest.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			other := c
			other.url = withQuery(c.url, "semel-check=1")
			return s.behaviour(ctx, c, other, "another query")
		},
	},
	{
		ID: "mismatch/media-type", Level: Info, Title: "What another media type under a used key does",
		Sends:   "A request, and the same bytes with a parameter more in Content-Type under the same key.",
		Expects: "A refusal, or the first reply.",
		Clause:  "N9, N10: draft section 2.4.",
		Costs:   "The same bytes may mean something else under another media type.",
		Fix:     "Take the media type into the digest.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			media := c.header.Get("Content-Type")
			if media == "" {
				return skip("the request has no Content-Type")
			}
			return s.behaviour(ctx, c, c.set("Content-Type", media+"; semel-check=1"), "another media type")
		},
	},
}

// strength is how strongly a refusal shows that nothing was executed: its reply
// would name the execution, if replies do.
func (r *run) strength() Evidence {
	switch {
	case r.target.Observe != nil:
		return Counted
	case len(r.marks.names) > 0:
		return Identity
	}
	return Bytes
}

// refusal holds where a reply that is no success is a refusal. A server that
// failed, or did not answer, has refused nothing.
func (r *run) refusal(x Exchange) outcome {
	if !x.refused() || x.turnedAway() {
		return inconclusive("it is neither accepted nor refused: it got %s", x.result())
	}
	return held(r.strength(), "refused with %d", x.Status)
}

// behaviour tells what a variation under a used key does. That it must not
// execute is for the reader to weigh, so executing is told as well.
func (s *session) behaviour(ctx context.Context, c, variation call, what string) outcome {
	var second Exchange
	seen := s.watch(ctx, func() []Exchange {
		first := s.send(ctx, c)
		second = s.send(ctx, variation)
		return []Exchange{first, second}
	})
	switch {
	case seen.unclear != "":
		return inconclusive("%s", seen.unclear)
	case seen.executions > 1:
		return told("%s is executed as an operation of its own", what)
	case second.succeeded():
		return told("%s is taken for the same request", what)
	}
	return told("%s is refused with %d", what, second.Status)
}
