package storetest

import (
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

type place struct{ scope, key string }

var keyChapters = []chapter{
	{name: "scope and key compare as bytes (R11)", rules: keyRules()},
}

// keyRules: each pair is two records, and each name comes back as it went in.
func keyRules() []rule {
	var rules []rule
	for name, pair := range map[string][2]place{
		"keys that differ in case are two":                     {{"s", "KEY"}, {"s", "key"}},
		"scopes that differ in case are two":                   {{"ACME", "k"}, {"acme", "k"}},
		"keys that differ in a trailing space are two":         {{"s", "key"}, {"s", "key "}},
		"scopes that differ in a trailing space are two":       {{"s", "key"}, {"s ", "key"}},
		"keys that differ in a leading space are two":          {{"s", "key"}, {"s", " key"}},
		"keys that differ in an accent are two":                {{"s", "cafe"}, {"s", "café"}},
		"composed and decomposed accents are two":              {{"s", "caf\u00e9"}, {"s", "cafe\u0301"}},
		"sharp s and double s are two":                         {{"s", "stra\u00dfe"}, {"s", "strasse"}},
		"a NUL byte ends nothing":                              {{"s", "key\x00a"}, {"s", "key\x00b"}},
		"a trailing NUL byte counts":                           {{"s", "key"}, {"s", "key\x00"}},
		"bytes that are not UTF-8 are kept apart":              {{"s", "\xff"}, {"s", "\xfe"}},
		"a scope and a key are not joined by a slash":          {{"a", "b/c"}, {"a/b", "c"}},
		"a scope and a key are not joined by nothing":          {{"ab", "c"}, {"a", "bc"}},
		"a scope and a key are not joined by a colon":          {{"a", "b:c"}, {"a:b", "c"}},
		"a scope and a key are not joined by a NUL byte":       {{"a", "b\x00c"}, {"a\x00b", "c"}},
		"scope and key do not change places":                   {{"a", "b"}, {"b", "a"}},
		"a key that looks like a number is not one":            {{"s", "1"}, {"s", "01"}},
		"a key that looks like a pattern is none":              {{"s", "%"}, {"s", "k_y"}},
		"keys that differ in the last byte of the longest are": {{"s", longest(semel.MaxKeyLength, "a")}, {"s", longest(semel.MaxKeyLength, "b")}},
		"scopes that differ in the last byte of the longest":   {{longest(semel.MaxScopeLength, "a"), "k"}, {longest(semel.MaxScopeLength, "b"), "k"}},
	} {
		rules = append(rules, rule{name: name, test: func(s *subject) { twoRecords(s, pair) }})
	}
	return rules
}

func longest(n int, last string) string { return strings.Repeat("x", n-1) + last }

func twoRecords(s *subject, pair [2]place) {
	var claims [2]semel.Record
	for i, at := range pair {
		p := params("")
		p.Scope, p.Key = at.scope, at.key
		claims[i] = s.claim(p)
		assert.Equal(s, claims[i].Scope, at.scope, "scope, in the answer")
		assert.Equal(s, claims[i].Key, at.key, "key, in the answer")
	}
	s.end(claims[0], toDone)
	s.end(claims[1], toReleased)
	for i, want := range []semel.State{semel.StateDone, semel.StateReleased} {
		rec, err := s.store.Get(s.Context(), pair[i].scope, pair[i].key)
		assert.NoError(s, err, "Get")
		assert.Equal(s, rec.State, want, "state")
		assert.Equal(s, rec.Scope, pair[i].scope, "scope, as read back")
		assert.Equal(s, rec.Key, pair[i].key, "key, as read back")
	}
}
