// Package sqltext tells of an SQL text what it would do to the transaction that
// it is sent in, and to the connection that others get after it. It knows the
// first words of each statement from what stands in quotes and comments, and
// some phrases. What a procedure or a function does it does not see.
package sqltext

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Effect is what a text would do besides its work.
type Effect struct {
	// Refused is why the text must not be run in a transaction whose end is
	// not its own, or "".
	Refused string
	// MayEnd says that it could end the transaction all the same, by what it
	// calls.
	MayEnd bool
	// Leaves is the first word of a statement that leaves something on its
	// connection when the transaction has ended, such as a setting, a temporary
	// table or a lock; or "".
	Leaves string
}

// Dialect is what one database's SQL looks like, as far as it takes.
type Dialect struct {
	reading
	// others are how the server reads a text after a change of its settings,
	// which may be made in ways that are not seen.
	others []reading

	quotes     string // signs that open and close a quoted text or name
	names      string // those that open a name
	parameters bool   // $a(…) and its like are names, as SQLite reads them
	dollars    bool   // $tag$ quotes $tag$, and E'it\'s' is one text
	nested     bool   // comments stand inside comments
	mariadb    bool   // # begins a comment, -- only before a space, and what /*! begins is executed
	lineEnds   string // what ends a comment that began with --

	// refuses says why a statement that begins with words is refused, or "".
	refuses func(words []string) string
	// harmless reports whether a statement that begins with words cannot end
	// the transaction, whatever it calls. It is nil where nothing that is called
	// can.
	harmless func(words []string) bool
	// leaves reports whether a statement that begins with words leaves something
	// on the connection.
	leaves func(words []string) bool
	// leaving are phrases by which any statement does.
	leaving [][]string
	// mentions are what a text does so by wherever it stands, also in quotes: a
	// connection is cheaper than to know for certain.
	mentions []string
}

// reading is what of a dialect a setting of the server changes.
type reading struct {
	backslash string // the quotes in which a backslash escapes
	brackets  bool   // [a name]
}

// Look returns what query would do, by whichever reading. What ends the
// transaction by another reading than the usual one is refused, or no more than
// asked about where the server can be: there it may be a text with an escape
// that is nothing of the kind.
func (d *Dialect) Look(query string) Effect {
	e := d.look(query)
	if !strings.ContainsAny(query, `\[`) {
		return e
	}
	for _, other := range d.others {
		as := *d
		as.reading = other
		o := as.look(query)
		if d.harmless == nil {
			e.Refused = cmp.Or(e.Refused, o.Refused)
		}
		e.MayEnd = e.MayEnd || d.harmless != nil && (o.MayEnd || o.Refused != "")
		e.Leaves = cmp.Or(e.Leaves, o.Leaves)
	}
	return e
}

func (d *Dialect) look(query string) Effect {
	var e Effect
	for s := range d.statements(query) {
		if e.Refused == "" {
			e.Refused = d.refuses(s.words)
		}
		if d.harmless != nil && !d.harmless(s.words) {
			e.MayEnd = true
		}
		if s.leaves || d.leaves(s.words) && !s.dropped {
			e.Leaves = s.words[0]
		}
	}
	for _, word := range d.mentions {
		if e.Leaves == "" && mentions(query, word) {
			e.Leaves = word
		}
	}
	return e
}

// mentions reports whether text has word, in capitals or not.
func mentions(text, word string) bool {
	for i := range len(text) - len(word) + 1 {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// ending is why a statement is refused that would end or begin the transaction.
func ending(word string) string {
	return word + " is refused: the transaction is committed or rolled back after the handler has returned; " +
		"return an error to undo it, or use a savepoint"
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

// statement is what is known of one of a text.
type statement struct {
	words   []string // the first ones, in capitals
	leaves  bool     // by one of the phrases
	dropped bool     // at the commit: ON COMMIT DROP

	last  [3]string // tokens
	name  string    // what the last token but one has in quotes
	inner string    // what the last one has
	depth int       // of parentheses
	local int       // the depth inside a call that leaves something unless it ends with true
}

// firstWords is how many words of a statement are looked at. Of SET and EXPLAIN
// it is all.
const firstWords = 4

// statements yields what is known of each statement in a text that has any
// word.
func (d *Dialect) statements(query string) iter.Seq[*statement] {
	return func(yield func(*statement) bool) {
		s := &statement{words: make([]string, 0, firstWords)}
		for rest := query; ; {
			before := rest
			var word string
			word, rest = d.nextToken(rest)
			if word == "" || word == ";" {
				if len(s.words) > 0 && !yield(s) {
					return
				}
				*s = statement{words: s.words[:0]}
			} else {
				s.name, s.inner = s.inner, d.inQuotes(word, before[:len(before)-len(rest)])
				s.add(d, word)
			}
			if word == "" {
				return
			}
		}
	}
}

// inQuotes is what a token that ends text has in its quotes, if they are those
// of a name.
func (d *Dialect) inQuotes(token, text string) string {
	if len(token) != 1 || !strings.Contains(d.names, token) || len(text) < 2 {
		return ""
	}
	text = text[:len(text)-1]
	return text[strings.LastIndex(text, token)+1:]
}

// add takes the next token up.
func (s *statement) add(d *Dialect, token string) {
	if len(s.words) < firstWords || s.words[0] == "SET" || s.words[0] == "EXPLAIN" || token == executable {
		s.words = append(s.words, strings.ToUpper(token))
	}
	copy(s.last[:], s.last[1:])
	s.last[len(s.last)-1] = token
	s.dropped = s.dropped || s.endsWith(onCommitDrop)
	for _, phrase := range d.leaving {
		s.leaves = s.leaves || s.endsWith(phrase)
	}
	switch token {
	case "(":
		s.depth++
		if s.endsWith(setConfig) {
			s.leaves = s.leaves || s.local > 0 // one inside another is not followed
			s.local = s.depth
		}
	case ")":
		if s.local == s.depth && s.local > 0 {
			s.leaves = s.leaves || !s.endsWith(forTransaction)
			s.local = 0
		}
		s.depth--
	}
}

var (
	onCommitDrop = []string{"ON", "COMMIT", "DROP"}
	// setConfig opens a call that makes a setting of PostgreSQL's, for the
	// transaction if its last argument is true: which is known if it is that word.
	setConfig      = []string{"SET_CONFIG", "("}
	forTransaction = []string{",", "TRUE", ")"}
)

// endsWith reports whether the tokens so far end with a phrase. A name before
// a dot or a parenthesis may be in quotes.
func (s *statement) endsWith(phrase []string) bool {
	last := s.last[len(s.last)-len(phrase):]
	for i, word := range slices.Backward(phrase) {
		quoted := i == len(phrase)-2 && (phrase[i+1] == "." || phrase[i+1] == "(") && strings.EqualFold(s.name, word)
		if !quoted && !strings.EqualFold(last[i], word) {
			return false
		}
	}
	return true
}
