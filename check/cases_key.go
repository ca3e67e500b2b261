package check

import (
	"context"
	"net/http"
	"strings"
)

var keyCases = []Case{
	{
		ID: "key/missing", Level: Should, Title: "A request without a key is refused",
		Sends: "The request without the field.", Expects: "400, and nothing executed.",
		Clause: "N21: draft section 2.7.",
		Costs:  "A client that forgets the key is unprotected, and learns of it by the first double charge.",
		Fix:    "Require the key wherever money moves.",
		run:    refusedKey(func(_ *run, c call) call { return c.under() }),
	},
	{
		ID: "key/empty", Level: Should, Title: "An empty key is refused",
		Sends: "The request with an empty string for a key.", Expects: "400, and nothing executed.",
		Clause: "N1, N28: draft sections 2.1 and 5.",
		Costs:  "All clients with an unset variable share one key: the second of them is told that it has paid.",
		Fix:    "Refuse keys without a character.",
		run:    refusedKey(func(r *run, c call) call { return c.under(r.quote("")) }),
	},
	{
		ID: "key/twice", Level: Should, Title: "Two keys in one request are refused",
		Sends: "The request with two lines of the field that differ.", Expects: "400, and nothing executed.",
		Clause: "N1: one Item, draft section 2.1; RFC 9651 section 4.2.",
		Costs:  "Layers that look at different lines protect different operations.",
		Fix:    "Read all lines of the field, and refuse more than one.",
		run:    refusedKey(func(r *run, c call) call { return c.under(r.quote(newKey()), r.quote(newKey())) }),
	},
	{
		ID: "key/unterminated", Level: Should, Title: "A key that is no string is refused",
		Sends: `The request with a key that begins with a quote and does not end with one.`, Expects: "400, and nothing executed.",
		Clause: "N1: draft section 2.1; RFC 9651 section 4.2.",
		Costs:  "What cannot be parsed counts as absent in some stacks, and the request runs unprotected.",
		Fix:    "Refuse what is no structured field's string. Never take it for a missing key.",
		run:    refusedKey(func(_ *run, c call) call { return c.under(`"` + newKey()) }),
	},
	{
		ID: "key/non-ascii", Level: Should, Title: "A key of bytes beyond ASCII is refused",
		Sends: "The request with a key that holds the bytes of an umlaut.", Expects: "400, and nothing executed.",
		Clause: "RFC 9651 section 3.3.3; N28: draft section 5.",
		Costs:  "Two databases and two proxies read such bytes in different ways, and one key becomes two.",
		Fix:    "Allow printable ASCII.",
		run:    refusedKey(func(r *run, c call) call { return c.under(r.quote("k\u00fc" + newKey())) }),
	},
	{
		ID: "key/very-long", Level: Practice, Title: "A key of 10 000 characters is refused in good order",
		Sends: "The request with a key of 10 000 characters.", Expects: "A 4xx, and nothing executed.",
		Clause: "N28: draft section 5.",
		Costs:  "A database that cuts it off makes one key of many; an index that fails makes a 500.",
		Fix:    "Publish a length and refuse what is longer.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			x := s.send(ctx, c.under(s.run.quote(newKey()+strings.Repeat("k", 10_000))))
			switch {
			case x.refused():
				return held(Bytes, "refused with %d", x.Status)
			case x.succeeded():
				return told("it is accepted")
			}
			return broken(Bytes, "it got %s", x.result())
		},
	},
	{
		ID: "key/255", Level: Practice, Title: "A key of 255 characters is good",
		Sends: "The request twice with a key of 255 characters.", Expects: "One execution.",
		Clause: "Not in the draft; 255 is the most common limit of payment APIs.",
		Costs:  "Clients that make keys of several parts are locked out.",
		Fix:    "Allow at least 255.",
		run: func(ctx context.Context, s *session) outcome {
			key := newKey()
			c := s.run.newCall().under(s.run.quote(key + strings.Repeat("k", 255-len(key))))
			return s.accepted(ctx, c)
		},
	},
	{
		ID: "key/tail", Level: Must, Title: "Long keys that differ in their end are two keys",
		Sends:   "Two requests whose keys of 200 characters differ in the last one.",
		Expects: "Two executions, or a refusal of both.",
		Clause:  "N2: draft section 2.2.",
		Costs:   "A column that cuts keys off makes one of two payments, and tells both that theirs was done.",
		Fix:     "Store keys whole, or a digest of all of them.",
		run: func(ctx context.Context, s *session) outcome {
			stem := newKey() + strings.Repeat("k", 160)
			return s.twoKeys(ctx, stem+"a", stem+"b")
		},
	},
	{
		ID: "key/case", Level: Must, Title: "Keys that differ in case are two keys",
		Sends:   "Two requests whose keys differ in the case of their letters.",
		Expects: "Two executions, or a refusal of one.",
		Clause:  "N2: draft section 2.2; RFC 9651 strings are compared as they are.",
		Costs:   "A case-blind column makes one operation of two clients' keys.",
		Fix:     "Compare keys byte by byte: a binary collation.",
		run: func(ctx context.Context, s *session) outcome {
			key := "key-" + newKey()
			return s.twoKeys(ctx, key, strings.ToUpper(key))
		},
	},
	{
		ID: "key/quotes", Level: Practice, Title: "A key with and without quotes is one key",
		Sends:   "The request with its key in quotes, and the same without them.",
		Expects: "One execution; a refusal of the bare form is good as well.",
		Clause:  "N1: draft section 2.1.",
		Costs:   "A proxy or a new client library adds quotes, and the retry is a new payment.",
		Fix:     "Parse the field, and store the string without its quotes.",
		run: func(ctx context.Context, s *session) outcome {
			key := "key-" + newKey()
			c := s.run.newCall()
			return s.watch(ctx, func() []Exchange {
				return []Exchange{s.send(ctx, c.under(`"`+key+`"`)), s.send(ctx, c.under(key))}
			}).once("both forms are one key, or one of them is refused")
		},
	},
	{
		ID: "key/parameters", Level: Info, Title: "What a parameter behind the key does",
		Sends:   `The request with "key", and with "key";v=2.`,
		Expects: "One execution, or a refusal.",
		Clause:  "RFC 9651 section 2: unknown parameters are ignored.",
		Costs:   "A layer that adds a parameter would make another key of it.",
		Fix:     "Parse the field, and leave parameters out.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if s.run.target.BareKeys {
				return skip("keys are sent bare")
			}
			return s.behaviour(ctx, c, c.under(c.keys[0]+";v=2"), "a key with a parameter")
		},
	},
}

// refusedKey is the case of a key that must be refused with a 400 and must not
// let anything run.
func refusedKey(change func(r *run, c call) call) func(context.Context, *session) outcome {
	return func(ctx context.Context, s *session) outcome {
		var x Exchange
		seen := s.watch(ctx, func() []Exchange {
			x = s.send(ctx, change(s.run, s.run.newCall()))
			return []Exchange{x}
		})
		switch {
		case x.succeeded(), seen.evidence == Counted && seen.executions > 0:
			return broken(s.run.strength(), "it was executed: %s", x.result())
		case x.Status != http.StatusBadRequest:
			return broken(Bytes, "it got %s", x.result())
		}
		return held(s.run.strength(), "refused with 400")
	}
}

// accepted holds when a call is executed once and given again.
func (s *session) accepted(ctx context.Context, c call) outcome {
	var first Exchange
	seen := s.watch(ctx, func() []Exchange {
		first = s.send(ctx, c)
		return []Exchange{first, s.send(ctx, c)}
	})
	if !first.succeeded() {
		return broken(Bytes, "it got %s", first.result())
	}
	return seen.once("it is good, and known the second time")
}

// twoKeys holds when two keys are two operations, or are not accepted.
func (s *session) twoKeys(ctx context.Context, a, b string) outcome {
	r := s.run
	var got [2]Exchange
	seen := s.watch(ctx, func() []Exchange {
		for i, key := range []string{a, b} {
			got[i] = s.send(ctx, r.newCall().under(r.quote(key)))
		}
		return got[:]
	})
	switch {
	case !got[0].succeeded():
		return r.refusal(got[0])
	case got[1].refused() && !got[1].conflicts() && got[1].Status != http.StatusUnprocessableEntity:
		return held(r.strength(), "such keys are refused: %d, %d", got[0].Status, got[1].Status)
	case seen.unclear != "":
		return inconclusive("%s", seen.unclear)
	case seen.evidence == Bytes:
		return inconclusive("replies say nothing of the execution that they come from")
	case seen.executions == 2:
		return held(seen.evidence, "two executions")
	}
	return broken(seen.evidence, "they are taken for one key: the second got %s", got[1].result())
}
