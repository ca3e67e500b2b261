package sqlstore

import (
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/sqltext"
	"github.com/semel-dev/semel/migrate"
)

// dialect is what one database says differently from another: data, and how
// its errors are read. The behaviour is the same for all.
type dialect struct {
	// example is an import that registers a driver, and the driver's name.
	example string
	// now is the clock in microseconds since 1970, read once the statement
	// holds the row's lock; asked is the time at which the statement was sent,
	// which is one value for the whole of it and can be looked up in an index.
	now, asked string
	// lock is what a SELECT adds to keep the row from other writers, and
	// lockFree what it adds to do so for rows that nobody else has locked.
	lock, lockFree string
	// ignore is what an INSERT adds to insert nothing where the key is taken.
	ignore string
	sweep  string
	// schema asks for the schema that the store's tables are in, quoted and with a
	// dot: a handler may change where names are looked for.
	schema string
	// clear undoes what a handler may have left on the connection that stands
	// before the clock or, under their whole names, before the store's tables.
	// It is empty where nothing can.
	clear []string
	// waits is an expression that has the commit of the transaction wait for the
	// disk, whatever was set in it, where the store is durable. It is empty where
	// nothing can be set.
	waits string
	// limit is how long the database works on, or waits with, a statement of the
	// store's own.
	limit time.Duration
	// maxReply asks for the most bytes of a reply that can be saved, within limit
	// and on a busy machine: one that could not be would run again.
	maxReply string
	// numbered placeholders are $1, $2, …; else they are question marks.
	numbered bool

	// own are the options of a transaction of the store's own, and limits its
	// first statement, where the connection cannot be trusted to keep its settings.
	own    sql.TxOptions
	limits string
	// opened and release are the first and the last statement of a business
	// transaction: see joint. It may be idle for as long as opened is told. Where
	// that is a setting of the connection limitStays, until release takes it back.
	opened     func(idle time.Duration) string
	release    string
	limitStays bool

	// claim, extend and finish are the usual case in one statement: see
	// single.go. They are empty where it takes a transaction all the same. They
	// know no offset of the clock, which only SQLite's tests have.
	claim, extend, finish string
	// joinedFinish says that finish does not rely on the settings of the
	// connection, so that a business transaction can run it.
	joinedFinish bool

	// durable asks, in one row, whether a commit is on disk when it returns.
	// It is empty where every connection makes sure of it.
	durable string
	// logged asks, in one row, how far commits are logged and how far that is
	// on disk: see flush.go. It is empty where nobody sees a commit before it is
	// on disk.
	logged string

	migrations migrate.Set
	text       *sqltext.Dialect
	errors     faults
}

// faults reads a database's errors. No driver is imported, so each dialect
// finds the code in its own way.
type faults struct {
	// again reports an error after which the statement, and the transaction
	// that it was in, are known to have had no effect and may succeed when they
	// are sent again: a deadlock, a serialization failure, a key that a rival
	// has just taken.
	again func(error) bool
	// refused reports an error of COMMIT after which nothing took effect.
	refused func(error) bool
	// ended reports an error of dialect.release that means: the transaction
	// is not there any more, and whoever ended it may have committed it.
	ended func(error) bool
	// stays reports one that means: the transaction is still there, and undone
	// if it can be rolled back.
	stays func(error) bool
}

func never(error) bool { return false }

// serverLimit is how long a server works on, or waits with, a statement of the
// store's own. It is shorter than semel.DefaultStoreTimeout, so that the server
// gives up before its caller does (R15); what is left is for the wait for a
// connection.
const serverLimit = 3 * time.Second

// statements are the texts in one dialect.
type statements struct {
	read, readToWrite     string
	insert, update        string
	raised, sweep         string
	audit, auditsOf       string
	release               string
	claim, extend, finish string
	waits                 string
	clear                 []string
}

// filler fills a text in: the tables with the schema that they are in, and the
// clock with shift added, if there is one.
type filler struct {
	dialect *dialect
	waits   string // of the dialect, or none
	names   *strings.Replacer
}

func (d *dialect) filler(schema, shift string, class semel.StoreClass) *filler {
	now, asked := d.now, d.asked
	if shift != "" {
		now, asked = now+" + "+shift, asked+" + "+shift
	}
	waits := d.waits
	if class != semel.Durable {
		waits = ""
	}
	return &filler{d, waits, strings.NewReplacer(
		"semel_records", schema+"semel_records", "semel_audit", schema+"semel_audit", "semel_sweep", schema+"semel_sweep",
		"{now}", now, "{asked}", asked, "{lock}", d.lock, "{lockFree}", d.lockFree,
		"{columns}", columns, "{claimed}", claimedColumns(),
	)}
}

func (f *filler) text(s string) string { return f.dialect.placeholders(f.names.Replace(s)) }

// statements returns those of every call.
func (f *filler) statements() statements {
	d, text := f.dialect, f.text
	clearing := make([]string, len(d.clear))
	for i, statement := range d.clear {
		clearing[i] = text(statement)
	}
	return statements{
		read:        text(strings.Replace(selectRecord, "{lock}", "", 1)),
		readToWrite: text(selectRecord),
		insert:      text(insertRecord + d.ignore),
		update:      text(updateRecord()),
		raised:      text(selectRaised),
		sweep:       text(d.sweep),
		audit:       text(insertAudit),
		auditsOf:    text(selectAudits),
		release:     d.release,
		clear:       clearing,
		claim:       text(d.claim),
		extend:      text(d.extend),
		finish:      text(strings.Replace(d.finish, "{waits}", separated(f.waits), 1)),
		waits:       selecting(f.waits),
	}
}

// separated is an expression behind others, and selecting one alone.
func separated(expression string) string {
	if expression == "" {
		return ""
	}
	return ", " + expression
}

func selecting(expression string) string {
	if expression == "" {
		return ""
	}
	return "SELECT " + expression
}

// placeholders numbers the question marks of s if the dialect wants that. None
// of our statements has one in a quoted text.
func (d *dialect) placeholders(s string) string {
	if !d.numbered {
		return s
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(s, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}
