package check

import (
	"bytes"
	"context"
	"net/http"
	"slices"
)

var replayCases = []Case{
	{
		ID: "replay/executes", Level: Must, Title: "A repetition executes nothing",
		Sends:   "The same request twice with the same key, one after the other, each on a connection of its own, as all requests are sent.",
		Expects: "One execution. The second reply may be the first one again, or a refusal.",
		Clause:  "N19: draft section 2.6, the result of the completed operation is given again.",
		Costs:   "A client that lost the reply sends again. Each repetition that executes takes the money again.",
		Fix:     "Claim the key in a table with a unique index before the work starts, and save the reply in the transaction of the work. Keep keys where all instances of the service see them: a retry comes on a new connection, and often at another instance.",
		run: func(ctx context.Context, s *session) outcome {
			p := s.pair(ctx)
			if !p.first.succeeded() {
				return setupFailed("the first request got %s", p.first.result())
			}
			return p.seen.once("two requests, one execution")
		},
	},
	{
		ID: "replay/answers", Level: Should, Title: "A repetition gets the result of the first",
		Sends:   "The same request twice, one after the other, with the same key.",
		Expects: "The second reply is a success, as the first was.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "A client that is refused does not know whether it has paid, and pays elsewhere.",
		Fix:     "Save the reply with the work, and give it again.",
		run: func(ctx context.Context, s *session) outcome {
			p := s.pair(ctx)
			switch {
			case !p.first.succeeded():
				return setupFailed("the first request got %s", p.first.result())
			case !p.again.succeeded():
				return broken(Bytes, "the repetition got %s", p.again.result())
			}
			return held(Bytes, "both were answered with success")
		},
	},
	{
		ID: "replay/status", Level: Practice, Title: "A repetition has the status of the first",
		Sends:   "The same request twice.",
		Expects: "The same status code.",
		Clause:  "Not asked by the draft; most payment APIs do so.",
		Costs:   "Clients that tell 201 from 200 take a replay for something else.",
		Fix:     "Save the status code with the reply.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			if p.first.Status != p.again.Status {
				return broken(Bytes, "%d first, %d for the repetition", p.first.Status, p.again.Status)
			}
			return held(Bytes, "%d both times", p.first.Status)
		},
	},
	{
		ID: "replay/body", Level: Practice, Title: "A repetition has the bytes of the first",
		Sends:   "The same request twice.",
		Expects: "The same body, byte by byte.",
		Clause:  "Not asked by the draft; APIs that answer with the present state instead say so.",
		Costs:   "A signature over the reply does not fit its replay, and a client sees a state that its request did not make.",
		Fix:     "Save the bytes of the reply, not what they were made of.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			if !bytes.Equal(p.first.ReplyBody, p.again.ReplyBody) {
				return broken(Bytes, "the bodies differ")
			}
			return held(Bytes, "%d bytes, the same", len(p.first.ReplyBody))
		},
	},
	{
		ID: "replay/ten", Level: Must, Title: "Ten repetitions execute nothing",
		Sends:   "The same request ten times, one after the other, with the same key.",
		Expects: "One execution.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "A client that never gets a reply goes on trying: some implementations forget the key after the first replay.",
		Fix:     "Do not use a key up by replaying it.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			return s.watch(ctx, func() []Exchange { return s.times(ctx, 10, c) }).once("ten requests, one execution")
		},
	},
	{
		ID: "replay/others-between", Level: Must, Title: "A key is known after other keys were used",
		Sends:   "A request, twenty others under keys of their own, and the first one again.",
		Expects: "Twenty-one executions.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "A small cache that drops the oldest key forgets that the money was taken.",
		Fix:     "Never drop a key before its retention has passed; refuse new ones when there is no room.",
		run: func(ctx context.Context, s *session) outcome {
			const between = 20
			c := s.run.newCall()
			var others []call
			for range between {
				others = append(others, s.run.newCall())
			}
			seen := s.watch(ctx, func() []Exchange {
				got := []Exchange{s.send(ctx, c)}
				for _, other := range others {
					got = append(got, s.send(ctx, other))
				}
				return append(got, s.send(ctx, c))
			})
			if seen.evidence == Bytes {
				return inconclusive("replies say nothing of the execution that they come from")
			}
			if seen.unclear == "" && seen.executions <= between {
				return inconclusive("%d executions of %d operations: not every request was carried out", seen.executions, between+1)
			}
			seen.executions -= between
			seen.requests -= between
			return seen.once("the first key was known after twenty others")
		},
	},
	{
		ID: "replay/other-key", Level: Must, Title: "Another key is another operation",
		Sends:   "The same body twice, under two keys.",
		Expects: "Two executions.",
		Clause:  "N2, N18: draft sections 2.2 and 2.6.",
		Costs:   "Who buys the same thing twice on purpose is served once, and told twice that it was done.",
		Fix:     "Tell operations by their key, and use the body only to find a key that is used wrongly.",
		run: func(ctx context.Context, s *session) outcome {
			a, b := s.run.newCall(), s.run.newCall()
			seen := s.watch(ctx, func() []Exchange { return []Exchange{s.send(ctx, a), s.send(ctx, b)} })
			switch {
			case seen.unclear != "":
				return inconclusive("%s", seen.unclear)
			case seen.evidence == Bytes:
				return inconclusive("replies say nothing of the execution that they come from")
			case seen.executions == 2:
				return held(seen.evidence, "two keys, two executions")
			}
			return broken(seen.evidence, "two keys, %d executions", seen.executions)
		},
	},
	{
		ID: "replay/marked", Level: Practice, Title: "A repetition is marked as one",
		Sends:   "The same request twice.",
		Expects: "The second reply, and only that, has a field that says so, such as Idempotent-Replayed: true.",
		Clause:  "Not asked by the draft (issue 46 of its working group); Stripe, Increase, Mollie and others do so.",
		Costs:   "Nobody can tell from a log whether an operation was done now or before.",
		Fix:     "Send Idempotent-Replayed: true with each reply that is given again.",
		run: func(ctx context.Context, s *session) outcome {
			p, stop := s.replayed(ctx)
			if stop != nil {
				return *stop
			}
			name := marker(p.again.ReplyHeader)
			switch {
			case name == "":
				return broken(Bytes, "no field says that the second reply is a replay")
			case marker(p.first.ReplyHeader) == name && p.first.ReplyHeader.Get(name) == p.again.ReplyHeader.Get(name):
				return broken(Bytes, "%s is the same in the first reply and in its replay", name)
			}
			return held(Bytes, "%s: %s", name, p.again.ReplyHeader.Get(name))
		},
	},
}

// markers are fields that say of a reply that it is given again.
var markers = []string{"Idempotent-Replayed", "Idempotency-Replayed", "Idempotent-Replay", "Idempotency-Replay", "X-Idempotent-Replayed", "Request-Idempotency", "Idempotency-Status", "X-Cache-Idempotency"}

func marker(h http.Header) string {
	if i := slices.IndexFunc(markers, func(name string) bool { return h.Get(name) != "" }); i >= 0 {
		return markers[i]
	}
	return ""
}

// times sends one call n times.
func (s *session) times(ctx context.Context, n int, c call) []Exchange {
	got := make([]Exchange, n)
	for i := range got {
		got[i] = s.send(ctx, c)
	}
	return got
}
