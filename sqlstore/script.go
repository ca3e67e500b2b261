package sqlstore

import (
	"iter"
	"slices"
	"strings"
)

// syntax is what a dialect's SQL looks like, as far as it takes to tell the
// first words of each statement in a text from what stands in quotes and
// comments.
type syntax struct {
	quotes     string // signs that open and close a quoted text or name
	backslash  string // those of them in which a backslash escapes
	brackets   bool   // [a name]
	parameters bool   // $a(…) and its like are names, as SQLite reads them
	dollars    bool   // $tag$ quotes $tag$, and E'it\'s' is one text
	nested     bool   // comments stand inside comments
	hash       bool   // # begins a comment, and -- only before a space
	lineEnds   string // what ends a comment that began with --

	// ends reports whether a statement that begins with words would end, or
	// begin, the transaction.
	ends func(words []string) bool
	// harmless reports whether a statement that begins with words cannot,
	// whatever it calls. It is nil where nothing that is called can.
	harmless func(words []string) bool
}

// sqliteSyntax is SQLite's.
var sqliteSyntax = syntax{quotes: "'\"`", brackets: true, parameters: true, lineEnds: "\n", ends: endsAnywhere}

// check refuses SQL that would end or begin the transaction, whose end is the
// guard's.
func (x *syntax) check(query string) error {
	for words := range x.statements(query) {
		if slices.Contains(words, executable) {
			return misuse("a comment that the server executes (%s …) is refused: it is not looked into", executable)
		}
		if x.ends(words) {
			return misuse("%s is refused: the transaction is committed or rolled back after the handler has returned; "+
				"return an error to undo it, or use a savepoint", words[0])
		}
	}
	return nil
}

// mayEnd reports whether a query that check has let through could end the
// transaction all the same, by what it calls.
func (x *syntax) mayEnd(query string) bool {
	if x.harmless == nil {
		return false
	}
	for words := range x.statements(query) {
		if !x.harmless(words) {
			return true
		}
	}
	return false
}

// endsAnywhere knows the words that end or begin a transaction in every
// dialect. ROLLBACK TO a savepoint ends nothing.
func endsAnywhere(words []string) bool {
	switch words[0] {
	case "ROLLBACK":
		return !slices.Contains(words[1:], "TO")
	case "BEGIN", "COMMIT", "END", "START":
		return true
	}
	return false
}

// firstWords is how many words of a statement are looked at. Of SET it is all.
const firstWords = 4

// statements yields the first words, in capitals, of each statement in a text
// that has any.
func (x *syntax) statements(query string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		words := make([]string, 0, firstWords)
		for rest := query; ; {
			var word string
			word, rest = x.nextToken(rest)
			switch {
			case word == "" || word == ";":
				if len(words) > 0 && !yield(words) {
					return
				}
				words = words[:0]
			case len(words) < firstWords || words[0] == "SET" || word == executable:
				words = append(words, strings.ToUpper(word))
			}
			if word == "" {
				return
			}
		}
	}
}

// executable opens a comment that MariaDB executes.
const executable = "/*!"

// nextToken returns the next word, semicolon or other sign of an SQL text, and
// what follows it. White space and comments are no tokens; a quoted text is one
// sign, whatever is in it.
func (x *syntax) nextToken(s string) (token, rest string) {
	s = x.skipSpace(s)
	if s == "" {
		return "", ""
	}
	switch c := s[0]; {
	case x.parameters && strings.IndexByte("$@:#", c) >= 0:
		return parameter(s)
	case x.dollars && c == '$':
		return dollarQuoted(s)
	case isLetter(c):
		end := strings.IndexFunc(s, func(r rune) bool { return r < 0x80 && !isLetter(byte(r)) })
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; x.dollars && strings.EqualFold(word, "E") && strings.HasPrefix(s[end:], "'") {
			return quoted(s[end:], '\'', true)
		}
		return s[:end], s[end:]
	case strings.IndexByte(x.quotes, c) >= 0:
		return quoted(s, c, strings.IndexByte(x.backslash, c) >= 0)
	case x.brackets && c == '[':
		return quoted(s, ']', false)
	case x.hash && (strings.HasPrefix(s, executable) || strings.HasPrefix(s, "/*M!")):
		return executable, s[len(executable):]
	}
	return s[:1], s[1:]
}

// quoted cuts off a text that ends with the next closing sign. A doubled sign
// is then two texts in a row, which makes no difference here.
func quoted(s string, closing byte, backslash bool) (token, rest string) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == closing:
			return s[:1], s[i+1:]
		case backslash && s[i] == '\\':
			i++
		}
	}
	return s[:1], ""
}

// dollarQuoted cuts off a text as PostgreSQL quotes it: $$ … $$, or $tag$ …
// $tag$. Of $1 it cuts off the sign alone.
func dollarQuoted(s string) (token, rest string) {
	end := strings.IndexByte(s[1:], '$')
	if end < 0 {
		return s[:1], s[1:]
	}
	tag := s[:end+2]
	name := tag[1 : len(tag)-1]
	if name != "" && (name[0] <= '9' && name[0] >= '0' || strings.IndexFunc(name, func(r rune) bool { return r < 0x80 && !isLetter(byte(r)) }) >= 0) {
		return s[:1], s[1:]
	}
	_, rest, _ = strings.Cut(s[len(tag):], tag)
	return s[:1], rest
}

// parameter cuts off the name of a parameter as SQLite reads it. After a
// bracket it ends with the next one, whatever is between: $a('--;) is a name.
// One that has a space there is none, and the text is not run.
func parameter(s string) (token, rest string) {
	named := false
	for i := 1; i < len(s); i++ {
		switch {
		case isLetter(s[i]):
			named = true
		case s[i] == '(' && named:
			end := strings.IndexAny(s[i:], ")"+spaces)
			if end < 0 {
				return s[:1], ""
			}
			return s[:1], s[i+end+1:]
		case strings.HasPrefix(s[i:], "::"):
			i++
		default:
			return s[:1], s[i:]
		}
	}
	return s[:1], ""
}

// spaces are those of all dialects. A NUL is SQLite's end of the text, and no
// more than a space to a driver that would go on.
const spaces = " \t\r\n\f\v\x00"

// byteOrderMark is a space to SQLite where a word would begin.
const byteOrderMark = "\ufeff"

func (x *syntax) skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, spaces+byteOrderMark)
		switch {
		case strings.HasPrefix(s, "--") && (!x.hash || len(s) == 2 || s[2] <= ' '),
			x.hash && strings.HasPrefix(s, "#"):
			end := strings.IndexAny(s, x.lineEnds)
			if end < 0 {
				return ""
			}
			s = s[end+1:]
		case strings.HasPrefix(s, "/*") && (!x.hash || !strings.HasPrefix(s, executable) && !strings.HasPrefix(s, "/*M!")):
			s = x.skipComment(s[2:])
		default:
			return s
		}
	}
}

// skipComment returns what follows a comment, whose opening is cut off.
func (x *syntax) skipComment(s string) string {
	for depth := 1; ; {
		end := strings.Index(s, "*/")
		if end < 0 {
			return ""
		}
		if begin := strings.Index(s[:end], "/*"); x.nested && begin >= 0 {
			depth++
			s = s[begin+2:]
			continue
		}
		s = s[end+2:]
		if depth--; depth == 0 {
			return s
		}
	}
}

func isLetter(c byte) bool {
	return c == '_' || c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '$'
}
