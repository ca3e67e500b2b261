package sqlstore

import "strings"

// checkStatement refuses SQL that would end or begin the transaction, whose
// end is the guard's. It looks at the first word of each statement in query.
// ROLLBACK TO a savepoint ends nothing.
func checkStatement(query string) error {
	words := make([]string, 0, 2)
	for rest := query; ; {
		var word string
		word, rest = nextToken(rest)
		if word == "" || word == ";" {
			if err := checkFirst(words); err != nil {
				return err
			}
			words = words[:0]
		} else if len(words) < cap(words) {
			words = append(words, strings.ToUpper(word))
		}
		if word == "" {
			return nil
		}
	}
}

func checkFirst(words []string) error {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "ROLLBACK":
		if len(words) > 1 && words[1] == "TO" {
			return nil
		}
	case "BEGIN", "COMMIT", "END", "START":
	default:
		return nil
	}
	return misuse("%s is refused: the transaction is committed or rolled back after the handler has returned; "+
		"return an error to undo it, or use a savepoint", words[0])
}

// nextToken returns the next word, semicolon or other sign of an SQL text, and
// what follows it. White space and comments are no tokens; a quoted text is one
// sign, whatever is in it.
func nextToken(s string) (token, rest string) {
	s = skipSpace(s)
	if s == "" {
		return "", ""
	}
	switch c := s[0]; {
	case strings.IndexByte("$@:#", c) >= 0:
		return parameter(s)
	case isLetter(c):
		end := strings.IndexFunc(s, func(r rune) bool { return r < 0x80 && !isLetter(byte(r)) })
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:]
	case c == '\'' || c == '"' || c == '`':
		return quoted(s, c)
	case c == '[':
		return quoted(s, ']')
	}
	return s[:1], s[1:]
}

// quoted cuts off a text that ends with the next closing sign. A doubled sign
// is then two texts in a row, which makes no difference here.
func quoted(s string, closing byte) (token, rest string) {
	end := strings.IndexByte(s[1:], closing)
	if end < 0 {
		return s[:1], ""
	}
	return s[:1], s[end+2:]
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

// spaces are SQLite's. A NUL is its end of the text, and no more than a space
// to a driver that would go on.
const spaces = " \t\r\n\f\v\x00"

// byteOrderMark is a space to SQLite where a word would begin.
const byteOrderMark = "\ufeff"

func skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, spaces+byteOrderMark)
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		default:
			return s
		}
	}
}

func isLetter(c byte) bool {
	return c == '_' || c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '$'
}
