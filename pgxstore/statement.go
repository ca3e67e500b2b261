package pgxstore

import "strings"

// checkStatement refuses SQL that would end or begin the transaction, whose
// end is the guard's. It looks at the first words of each statement in query.
// What it does not see, such as a rewriter that makes another text of it, is
// noticed after the fact: see joint.
func checkStatement(query string) error {
	words := make([]string, 0, 2)
	for rest := query; ; {
		var token string
		token, rest = nextToken(rest)
		if token == "" || token == ";" {
			if err := checkFirst(words); err != nil {
				return err
			}
			words = words[:0]
		} else if len(words) < cap(words) {
			words = append(words, strings.ToUpper(token))
		}
		if token == "" {
			return nil
		}
	}
}

func checkFirst(words []string) error {
	if len(words) == 0 {
		return nil
	}
	second := words[len(words)-1]
	switch words[0] {
	case "ROLLBACK":
		if second == "TO" {
			return nil
		}
	case "PREPARE":
		if second != "TRANSACTION" {
			return nil
		}
	case "ABORT", "BEGIN", "COMMIT", "END", "START":
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
	case c == '\'' || c == '"':
		return quoted(s, false)
	case c == '$':
		return dollarQuoted(s)
	case isLetter(c):
		end := 1
		for end < len(s) && (isLetter(s[end]) || isDigit(s[end]) || s[end] == '$') {
			end++
		}
		if end == 1 && (c == 'e' || c == 'E') && strings.HasPrefix(s[1:], "'") {
			return quoted(s[1:], true)
		}
		return s[:end], s[end:]
	}
	return s[:1], s[1:]
}

// quoted cuts off a text that ends with the sign that it begins with. Where
// that is doubled it is two texts in a row, which makes no difference here.
func quoted(s string, backslash bool) (token, rest string) {
	for i := 1; i < len(s); i++ {
		switch {
		case backslash && s[i] == '\\':
			i++
		case s[i] == s[0]:
			return s[:1], s[i+1:]
		}
	}
	return s[:1], ""
}

// dollarQuoted cuts off $tag$ a text $tag$. A dollar sign may also begin a
// parameter.
func dollarQuoted(s string) (token, rest string) {
	end := 1
	for end < len(s) && (isLetter(s[end]) || end > 1 && isDigit(s[end])) {
		end++
	}
	if end == len(s) || s[end] != '$' {
		return s[:1], s[1:]
	}
	tag := s[:end+1]
	_, rest, _ = strings.Cut(s[len(tag):], tag)
	return s[:1], rest
}

// skipSpace cuts off white space and comments, which may hold comments.
func skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\n\r\f\v\ufeff")
		switch {
		case strings.HasPrefix(s, "--"):
			end := strings.IndexAny(s, "\n\r")
			if end < 0 {
				return ""
			}
			s = s[end:]
		case strings.HasPrefix(s, "/*"):
			s = afterComment(s[2:])
		default:
			return s
		}
	}
}

func afterComment(s string) string {
	for depth := 1; depth > 0; {
		next := strings.IndexByte(s, '/')
		switch {
		case next < 0:
			return ""
		case next > 0 && s[next-1] == '*':
			depth--
			s = s[next+1:]
		case strings.HasPrefix(s[next:], "/*"):
			depth++
			s = s[next+2:]
		default:
			s = s[next+1:]
		}
	}
	return s
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
