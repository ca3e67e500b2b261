package fingerprint

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// span is where a name stands in a text, without its quotes.
type span struct{ from, to int }

// foldTwins reports whether an object in canonical, which AppendFormat wrote,
// has two names that differ only in case. A reader that ignores case, as
// encoding/json does, takes both for one, and which of the values counts is a
// matter of the order that a meaning leaves out. Escapes need not be undone:
// each text has one spelling here.
func (d *digester) foldTwins(canonical []byte) bool {
	names := d.names[:0] // of the objects that are open, each object's together
	defer func() { d.names = names }()
	firsts := make([]int, 0, maxDepth) // where in names those of each open object begin
	for i := 0; i < len(canonical); i++ {
		switch canonical[i] {
		case '{':
			firsts = append(firsts, len(names))
		case '}':
			first := firsts[len(firsts)-1]
			firsts = firsts[:len(firsts)-1]
			if hasTwins(canonical, names[first:]) {
				return true
			}
			names = names[:first]
		case '"':
			end := i + quotedEnd(canonical[i:])
			if end < len(canonical) && canonical[end] == ':' {
				names = append(names, span{i + 1, end - 1})
			}
			i = end - 1
		}
	}
	return false
}

// hasTwins sorts names, so that those that are one but for case meet.
func hasTwins(text []byte, names []span) bool {
	compare := func(a, b span) int { return compareFolded(text[a.from:a.to], text[b.from:b.to]) }
	slices.SortFunc(names, compare)
	for i := range len(names) - 1 {
		if compare(names[i], names[i+1]) == 0 {
			return true
		}
	}
	return false
}

// compareFolded orders two texts by their characters, whatever the case of
// these.
func compareFolded(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		r, n := firstFolded(a)
		s, m := firstFolded(b)
		if r != s {
			return cmp.Compare(r, s)
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// firstFolded returns the one character that stands for all cases of the first of
// text, and the size of that. It is simple folding: the sign of Kelvin is a k,
// and ß is not ss.
func firstFolded(text []byte) (r rune, size int) {
	if c := text[0]; c < utf8.RuneSelf {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		return rune(c), 1
	}
	r, size = utf8.DecodeRune(text)
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next, size
		}
		r = next
	}
}
