package check

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

var concurrencyCases = []Case{
	atOnce(2), atOnce(10), atOnce(64),
	{
		ID: "concurrency/answers", Level: Should, Title: "Who comes too early gets a 409 or the result",
		Sends:   "The same request ten times at once.",
		Expects: "Each reply is the result or a 409: no 500, no timeout.",
		Clause:  "N20, N23: draft sections 2.6 and 2.7.",
		Costs:   "A 500 sends an honest client into its error path, and people into paying again.",
		Fix:     "Take a violated unique index for what it is: the key is in use.",
		run: func(ctx context.Context, s *session) outcome {
			got := s.race(ctx)
			for _, x := range got {
				if !x.succeeded() && !x.conflicts() && x.Status != 0 {
					return broken(Bytes, "one of ten got %s", x.result())
				}
				if x.Status == 0 {
					return broken(Bytes, "one of ten got no reply: %s", x.Err)
				}
			}
			return held(Bytes, "%s", tally(got))
		},
	},
	{
		ID: "concurrency/conflict-status", Level: Should, Title: "The refusal of an early repetition is a 409",
		Sends:   "The same request ten times at once.",
		Expects: "Those that are refused get 409 Conflict.",
		Clause:  "N23: draft section 2.7.",
		Costs:   "409 is the one refusal that asks for the same request again later; a client gives up on any other.",
		Fix:     "Answer 409 while the first request is at work.",
		run: func(ctx context.Context, s *session) outcome {
			for _, x := range s.race(ctx) {
				if x.conflicts() {
					return heldIf(x.Status == 409, "refused with %d", x.Status)
				}
			}
			return inconclusive("none of ten was refused as too early")
		},
	},
	{
		ID: "concurrency/retry-after", Level: Practice, Title: "The 409 says when to come again",
		Sends:   "The same request ten times at once.",
		Expects: "A 409 with Retry-After.",
		Clause:  "RFC 9110 section 10.2.3; the draft says nothing.",
		Costs:   "Clients guess: they hammer the API, or wait for longer than people do.",
		Fix:     "Send Retry-After with the 409, for about as long as the work takes.",
		run: func(ctx context.Context, s *session) outcome {
			for _, x := range s.race(ctx) {
				if x.conflicts() {
					after := x.ReplyHeader.Get("Retry-After")
					return heldIf(after != "", "Retry-After: %q", after)
				}
			}
			return inconclusive("none of ten was refused as too early")
		},
	},
	{
		ID: "concurrency/settles", Level: Must, Title: "After a race the key has its result",
		Sends:   "The same request ten times at once, and once more when all are answered.",
		Expects: "A success that comes from the one execution.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "A key that stays in use after a race is a payment whose outcome nobody gets to know.",
		Fix:     "End the claim with the work, whoever waits for it.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			var got []Exchange
			var last Exchange
			seen := s.watch(ctx, func() []Exchange {
				got = s.sendAtOnce(ctx, slices.Repeat([]call{c}, 10))
				last = s.settled(ctx, c)
				return append(got, last)
			})
			if !last.succeeded() && !s.run.refusesRepeats(last) {
				return broken(s.run.strength(), "after the race the request got %s", last.result())
			}
			return seen.onceOf(got, "the race has one result")
		},
	},
}

// atOnce is the case of n equal requests at the same time.
func atOnce(n int) Case {
	return Case{
		ID: fmt.Sprintf("concurrency/%d", n), Level: Must,
		Title:   fmt.Sprintf("%d requests at once are one execution", n),
		Sends:   fmt.Sprintf("The same request %d times at the same time under a new key, and once more when all are answered.", n),
		Expects: "One execution.",
		Clause:  "N20: draft section 2.6.",
		Costs:   "A double click, or a retry that starts before the first try has ended. Who looks for the key first and saves it afterwards lets both through.",
		Fix:     "Claim the key by inserting it, before the work: a unique index lets one in.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			var got []Exchange
			seen := s.watch(ctx, func() []Exchange {
				got = s.sendAtOnce(ctx, slices.Repeat([]call{c}, n))
				return append(got, s.settled(ctx, c))
			})
			return seen.onceOf(got, fmt.Sprintf("%d requests at once, one execution", n))
		},
	}
}

// race sends one operation ten times at once.
func (s *session) race(ctx context.Context) []Exchange {
	return s.sendAtOnce(ctx, slices.Repeat([]call{s.run.newCall()}, 10))
}

const (
	// settleTime is how long an operation may stay in use.
	settleTime  = 30 * time.Second
	settlePause = 200 * time.Millisecond
)

// settled sends a call until it is no longer refused as too early.
func (s *session) settled(ctx context.Context, c call) Exchange {
	return s.settledWithin(ctx, c, settleTime)
}

// settledWithin is settled for so long. Where each repetition gets the same
// refusal for good, it waits no longer than the work may take.
func (s *session) settledWithin(ctx context.Context, c call, patience time.Duration) Exchange {
	began := time.Now()
	for {
		x := s.send(ctx, c)
		if s.run.refusesRepeats(x) {
			patience = min(patience, 2*s.run.slowest+settlePause)
		}
		again := x.conflicts() || x.Status == 0 || x.Status == http.StatusServiceUnavailable
		if !again || time.Since(began) > patience || !wait(ctx, settlePause) {
			return x
		}
	}
}

// heldIf is held or broken, by what is seen in a reply.
func heldIf(good bool, format string, args ...any) outcome {
	if good {
		return held(Bytes, format, args...)
	}
	return broken(Bytes, format, args...)
}

// tally counts replies by their status.
func tally(got []Exchange) string {
	counts := make(map[int]int)
	for _, x := range got {
		counts[x.Status]++
	}
	var kinds []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d × %d", counts[status], status))
	}
	return strings.Join(kinds, ", ")
}
