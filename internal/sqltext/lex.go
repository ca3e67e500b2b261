package sqltext

import "strings"

// executable opens a comment that MariaDB executes.
const executable = "/*!"

// nextToken returns the next word, semicolon or other sign of an SQL text, and
// what follows it. White space and comments are no tokens; a quoted text is its
// opening sign, whatever is in it.
func (d *Dialect) nextToken(s string) (token, rest string) {
	s = d.skipSpace(s)
	if s == "" {
		return "", ""
	}
	switch c := s[0]; {
	case d.parameters && strings.IndexByte("$@:#", c) >= 0:
		return parameter(s)
	case d.dollars && c == '$':
		return dollarQuoted(s)
	case isLetter(c):
		end := strings.IndexFunc(s, func(r rune) bool { return r < 0x80 && !isLetter(byte(r)) })
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; d.dollars && strings.EqualFold(word, "E") && strings.HasPrefix(s[end:], "'") {
			return quoted(s[end:], '\'', true)
		}
		return s[:end], s[end:]
	case strings.IndexByte(d.quotes, c) >= 0:
		return quoted(s, c, strings.IndexByte(d.backslash, c) >= 0)
	case d.brackets && c == '[':
		return quoted(s, ']', false)
	case d.mariadb && (strings.HasPrefix(s, executable) || strings.HasPrefix(s, "/*M!")):
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

func (d *Dialect) skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, spaces+byteOrderMark)
		switch {
		case strings.HasPrefix(s, "--") && (!d.mariadb || len(s) == 2 || s[2] <= ' '),
			d.mariadb && strings.HasPrefix(s, "#"):
			end := strings.IndexAny(s, d.lineEnds)
			if end < 0 {
				return ""
			}
			s = s[end+1:]
		case strings.HasPrefix(s, "/*") && (!d.mariadb || !strings.HasPrefix(s, executable) && !strings.HasPrefix(s, "/*M!")):
			s = d.skipComment(s[2:])
		default:
			return s
		}
	}
}

// skipComment returns what follows a comment, whose opening is cut off.
func (d *Dialect) skipComment(s string) string {
	for depth := 1; ; {
		end := strings.Index(s, "*/")
		if end < 0 {
			return ""
		}
		if begin := strings.Index(s[:end], "/*"); d.nested && begin >= 0 {
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
