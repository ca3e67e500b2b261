package check

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const jsonFix = "Compare bodies by what they mean, or refuse what is not the same bytes. Never execute again."

var jsonCases = []Case{
	rewritten("json/whitespace", "other white space", "your body has no place for white space", func(body []byte) []byte {
		v := jsontext.Value(bytes.Clone(body))
		if v.Indent(jsontext.WithIndent("   ")) != nil {
			return nil
		}
		return append(v, '\n')
	}),
	rewritten("json/member-order", "its members in another order", "your body has fewer than two members; give it two", reversed),
	rewritten("json/escapes", "its letters escaped", "your body has no text that begins with a letter or digit; give it one", escapedLetters),
	rewritten("json/unknown-member", "a member more that nobody knows", "", func(body []byte) []byte {
		if trimmed := bytes.TrimRight(body, " \t\r\n"); bytes.HasSuffix(trimmed, []byte("}")) && len(trimmed) > 2 {
			return append(bytes.Clone(trimmed[:len(trimmed)-1]), `,"semelCheck":1}`...)
		}
		return nil
	}),
}

// rewritten is the case of a body that is written in another way. What it lacks is
// said of a body that stays the same.
func rewritten(id, what, lacks string, rewrite func([]byte) []byte) Case {
	return Case{
		ID: id, Level: Must, Title: "A body with " + what + " is not executed again",
		Sends:   "A request, and the same with the same key and " + what + ".",
		Expects: "The first reply, or a refusal.",
		Clause:  "N9, N10: draft section 2.4 leaves open what is the same; N26: executing it is not among the choices.",
		Costs:   "A client that builds its JSON anew for each try is charged for each.",
		Fix:     jsonFix,
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			body := rewrite(c.body)
			if body == nil || !json.Valid(c.body) {
				return skip("the body is no JSON that could be written with %s", what)
			}
			if bytes.Equal(body, c.body) {
				return skip("%s", lacks)
			}
			var second Exchange
			seen := s.watch(ctx, func() []Exchange {
				first := s.send(ctx, c)
				second = s.send(ctx, c.with(body))
				return []Exchange{first, second}
			})
			if second.succeeded() {
				return seen.once("taken for the same request")
			}
			return seen.once("refused")
		},
	}
}

// reversed writes the members of an object in reverse order.
func reversed(body []byte) []byte {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	var members [][]byte
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		member := append(bytes.Clone(name), ':')
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		members = append(members, append(member, value...))
	}
	slices.Reverse(members)
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))
}

// escapedLetters writes the first letter of each string value as an escape.
func escapedLetters(body []byte) []byte {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	var out []byte
	copied := int64(0)
	for {
		value, err := nextScalar(dec)
		if err != nil {
			break
		}
		if value.Kind() != '"' || len(value) < 3 || !isLetterOrDigit(value[1]) {
			continue
		}
		start := dec.InputOffset() - int64(len(value))
		out = append(out, body[copied:start]...)
		const hex = "0123456789abcdef"
		out = append(out, '"', '\\', 'u', '0', '0', hex[value[1]>>4], hex[value[1]&15])
		out = append(out, value[2:]...)
		copied = dec.InputOffset()
	}
	return append(out, body[copied:]...)
}

var bodyCases = []Case{
	{
		ID: "body/chunked", Level: Must, Title: "A body of unknown length is the same body",
		Sends:   "A request with Content-Length, and the same bytes chunked under the same key.",
		Expects: "The first reply, or a refusal.",
		Clause:  "RFC 9112 section 6: the framing is no part of the content.",
		Costs:   "A proxy between client and API changes the framing, and the retry is a new payment.",
		Fix:     "Read the body before the key is compared.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if len(c.body) == 0 {
				return skip("the request has no body")
			}
			chunked := c
			chunked.chunked = true
			return s.watch(ctx, func() []Exchange { return []Exchange{s.send(ctx, c), s.send(ctx, chunked)} }).
				once("not executed again")
		},
	},
	{
		ID: "body/compressed", Level: Info, Title: "What the same body compressed does",
		Sends:   "A request, and the same with Content-Encoding: gzip under the same key.",
		Expects: "The first reply, or a refusal.",
		Clause:  "RFC 9110 section 8.4.",
		Costs:   "A layer that unpacks bodies makes another request of the same one.",
		Fix:     "Compare what the handler reads.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if len(c.body) == 0 {
				return skip("the request has no body")
			}
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			w.Write(c.body) //nolint:errcheck // a buffer takes all.
			w.Close()
			return s.behaviour(ctx, c, c.with(packed.Bytes()).set("Content-Encoding", "gzip"), "a compressed body")
		},
	},
	{
		ID: "body/none", Level: Must, Title: "No body under a used key is not taken for the first one",
		Sends:   "A request, and one without a body under the same key.",
		Expects: "A refusal.",
		Clause:  "N22, N26: draft section 2.7.",
		Costs:   "A request that lost its body is told that it was paid.",
		Fix:     "Take an empty body into the digest as what it is.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if len(c.body) == 0 {
				return skip("the request has no body")
			}
			first, x := s.send(ctx, c), s.send(ctx, c.with(nil))
			switch {
			case !first.succeeded():
				return setupFailed("the first request got %s", first.result())
			case x.succeeded():
				return broken(s.run.strength(), "it got %s", x.result())
			}
			return s.run.refusal(x)
		},
	},
}
