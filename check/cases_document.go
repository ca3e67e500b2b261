package check

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/semel-dev/semel/internal/wellknown"
)

var retentionCases = []Case{
	{
		ID: "retention/document", Level: Practice, Title: "The rules are published for machines",
		Sends:   "A GET of " + wellknown.Path + ".",
		Expects: "A JSON document that says for how long keys are kept.",
		Clause:  "N8, N14, N15: draft sections 2.3 and 2.5.2 ask for published rules; where is left open.",
		Costs:   "A client that comes back after the retention pays again, and cannot know it.",
		Fix:     "Publish header, key syntax, retention and which replies are kept.",
		run: func(ctx context.Context, s *session) outcome {
			doc, x := s.document(ctx)
			switch {
			case doc == nil && x.succeeded() && s.run.marks.compare(s.run.executed, x) == otherExecution && sameForm(s.run.executed, x):
				return broken(Bytes, "%s got no rules, but a reply as the operation gives it: %s", wellknown.Path, x.result())
			case doc == nil:
				return broken(Bytes, "%s got %s", wellknown.Path, x.result())
			case len(doc.Endpoints) == 1:
				return held(Bytes, "1 operation has rules there")
			}
			return held(Bytes, "%d operations have rules there", len(doc.Endpoints))
		},
	},
	{
		ID: "retention/declared", Level: Practice, Title: "The operation is in the rules, with its retention",
		Sends:   "A GET of " + wellknown.Path + ".",
		Expects: "An entry for the operation with a retention of 24 hours or more.",
		Clause:  "N15: draft section 2.5.2.",
		Costs:   "Clients retry for a day; keys that live for less are no protection.",
		Fix:     "Keep keys for 24 hours at least, and say so.",
		run: func(ctx context.Context, s *session) outcome {
			e, stop := s.declared(ctx)
			if stop != nil {
				return *stop
			}
			const day = 24 * 60 * 60
			return heldIf(e.Retention < 0 || e.Retention >= day, "retention is %d seconds", e.Retention)
		},
	},
	{
		ID: "retention/required", Level: Practice, Title: "What is said of missing keys is true",
		Sends:   "The request without a key, and a GET of " + wellknown.Path + ".",
		Expects: "400 where the rules say that a key is required.",
		Clause:  "N14: draft section 2.5.2; N21: section 2.7.",
		Costs:   "A client that trusts the rules is unprotected.",
		Fix:     "Make the document from the settings that are in force.",
		run: func(ctx context.Context, s *session) outcome {
			e, stop := s.declared(ctx)
			if stop != nil {
				return *stop
			}
			x := s.send(ctx, s.run.newCall().under())
			return heldIf(e.Required == (x.Status == http.StatusBadRequest), "required: %t; without a key it got %d", e.Required, x.Status)
		},
	},
}

// wellKnown is the address at which rules are looked for.
func (r *run) wellKnown() string {
	u, err := url.Parse(r.target.URL)
	if err != nil {
		return r.target.URL // it was parsed before the run
	}
	return u.Scheme + "://" + u.Host + wellknown.Path
}

// document reads the published rules, if there are any.
func (s *session) document(ctx context.Context) (*wellknown.Document, Exchange) {
	x := s.send(ctx, call{method: http.MethodGet, url: s.run.wellKnown()})
	var doc wellknown.Document
	if x.Status != http.StatusOK || json.Unmarshal(x.ReplyBody, &doc) != nil || doc.Endpoints == nil {
		return nil, x
	}
	return &doc, x
}

// declared is what the rules say of the operation under test.
func (s *session) declared(ctx context.Context) (wellknown.Endpoint, *outcome) {
	doc, _ := s.document(ctx)
	if doc == nil {
		o := skip("no rules are published at %s", wellknown.Path)
		return wellknown.Endpoint{}, &o
	}
	u, err := url.Parse(s.run.target.URL)
	for _, e := range doc.Endpoints {
		if err == nil && e.Covers(s.run.target.Method, u.EscapedPath()) {
			return e, nil
		}
	}
	o := broken(Bytes, "the rules have no entry for the operation")
	return wellknown.Endpoint{}, &o
}

var problemCases = []Case{
	explained("problem/missing", "a missing key", "N21, N24", func(ctx context.Context, s *session) (Exchange, *outcome) {
		return s.send(ctx, s.run.newCall().under()), nil
	}),
	explained("problem/mismatch", "a used key", "N22, N24", func(ctx context.Context, s *session) (Exchange, *outcome) {
		m, stop := s.mismatch(ctx)
		return m.other, stop
	}),
	explained("problem/conflict", "a key in use", "N23, N24", func(ctx context.Context, s *session) (Exchange, *outcome) {
		for _, x := range s.race(ctx) {
			if x.conflicts() {
				return x, nil
			}
		}
		o := inconclusive("none of ten requests at once was refused as too early")
		return Exchange{}, &o
	}),
	{
		ID: "problem/told-apart", Level: Practice, Title: "Refusals can be told apart by a program",
		Sends:   "A request without a key, and another body under a used key.",
		Expects: "Two problem types (RFC 9457), or two error codes.",
		Clause:  "RFC 9457 section 3.1.1; issue 51 of the draft's working group.",
		Costs:   "A client must read prose to know whether to mend its request or to wait.",
		Fix:     "Give each refusal a type of its own.",
		run: func(ctx context.Context, s *session) outcome {
			m, stop := s.mismatch(ctx)
			if stop != nil {
				return *stop
			}
			missing := s.send(ctx, s.run.newCall().under())
			if !missing.refused() || !m.other.refused() {
				return inconclusive("the two are not both refused")
			}
			a, b := problemType(missing), problemType(m.other)
			return heldIf(a != "" && b != "" && a != b, "%q and %q", a, b)
		},
	},
}

// explained is the case of a refusal that says where it is documented.
func explained(id, what, clause string, refusal func(context.Context, *session) (Exchange, *outcome)) Case {
	return Case{
		ID: id, Level: Should, Title: "The refusal of " + what + " says where it is explained",
		Sends:   "A request with " + what + ".",
		Expects: "A problem document (RFC 9457) with a type that is an address, or a Link with rel=\"describedby\".",
		Clause:  clause + ": draft section 2.7.",
		Costs:   "A developer who is refused guesses, and the guess is most often a new key.",
		Fix:     "Answer with application/problem+json, and let its type lead to the documentation.",
		run: func(ctx context.Context, s *session) outcome {
			x, stop := refusal(ctx, s)
			switch {
			case stop != nil:
				return *stop
			case !x.refused():
				return inconclusive("it is not refused: it got %s", x.result())
			case strings.Contains(x.ReplyHeader.Get("Link"), "describedby"):
				return held(Bytes, "Link: %s", x.ReplyHeader.Get("Link"))
			}
			kind := problemType(x)
			return heldIf(strings.Contains(kind, ":") || strings.HasPrefix(kind, "/"), "its type is %q", kind)
		},
	}
}

// problemType is what a program can tell a refusal by: the type of a problem
// document, or an error code as many APIs have one.
func problemType(x Exchange) string {
	var doc struct {
		Type  string `json:"type"`
		Code  string `json:"code"`
		Error struct {
			Type string `json:"type"`
			Code string `json:"code"`
		} `json:"error"`
	}
	json.Unmarshal(x.ReplyBody, &doc) //nolint:errcheck // what cannot be read has no type.
	for _, found := range []string{doc.Type, doc.Code, doc.Error.Code, doc.Error.Type} {
		if found != "" && found != "about:blank" {
			return found
		}
	}
	return ""
}
