package load

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// evidence is what a run leaves behind.
type evidence struct {
	plan     *plan
	mode     semel.Mode
	hold     bool
	rowsKept bool // the store's database has the table of effects
	took     time.Duration

	told      []told // by payment
	answers   map[string]int
	stray     []string
	strays    int
	outage    time.Duration
	recovered []int // 2xx of each worker since the server last went down

	down        time.Duration // the longest time that the server itself was
	connections int           // to the server when the load was over; zero where nobody counts them

	runs       []effect       // the journal: each time that the handler came to its end
	runsBefore int            // how many of them had happened when the load was over
	rows       []effect       // that are committed
	open       []semel.Record // without an end when the load was over
	settled    int            // of them, as not applied
	records    []semel.Record // without an end in the end
}

// take takes over what d's clients have seen.
func (e *evidence) take(d *driver) {
	if e.answers == nil {
		e.answers = make(map[string]int)
	}
	for kind, n := range d.answers {
		e.answers[kind] += n
	}
	e.told = d.told
	e.stray = append(e.stray, d.stray...)
	e.strays += d.strays
	e.outage = max(e.outage, d.outage)
}

// unanswered are the payments of which no client has a final answer.
func (e *evidence) unanswered() []int {
	var all []int
	for n := range e.told {
		if len(e.told[n].finals) == 0 {
			all = append(all, n)
		}
	}
	return all
}

// traces are what there is of one payment.
type traces struct {
	before, after []effect // runs, before the load was over and after
	rows          []effect
	open          bool // its record was, when the load was over
}

// judge returns what was not as promised.
func (e *evidence) judge() []string {
	wrong := slices.Clone(e.stray)
	if e.strays > len(e.stray) {
		wrong = append(wrong, fmt.Sprintf("and %d more of the kind", e.strays-len(e.stray)))
	}
	all := make(map[string]*traces)
	for n := range e.plan.payments {
		all[e.plan.payments[n].operation()] = &traces{}
	}
	of := func(operation, what string) *traces {
		if all[operation] == nil {
			wrong = append(wrong, fmt.Sprintf("%s is of operation %s, which nobody asked for", what, operation))
			return &traces{}
		}
		return all[operation]
	}
	for i, run := range e.runs {
		t := of(run.Operation, "a run")
		if i < e.runsBefore {
			t.before = append(t.before, run)
		} else {
			t.after = append(t.after, run)
		}
	}
	for _, row := range e.rows {
		t := of(row.Operation, "a row")
		t.rows = append(t.rows, row)
	}
	for i := range e.open {
		of(e.open[i].OperationID.String(), "a record").open = true
	}
	for n := range e.plan.payments {
		for _, what := range e.judgePayment(n, all[e.plan.payments[n].operation()]) {
			wrong = append(wrong, fmt.Sprintf("payment %d: %s", n, what))
		}
	}
	return append(wrong, e.judgeAll(all)...)
}

// judgeAll looks at what is of no single payment.
func (e *evidence) judgeAll(all map[string]*traces) []string {
	var wrong []string
	taken := int64(0)
	for _, t := range all {
		for _, effect := range e.ledger(t) {
			taken += effect.Amount
		}
	}
	if want := e.plan.sum(); taken != want {
		wrong = append(wrong, fmt.Sprintf("the ledger has %d, and %d was paid", taken, want))
	}
	for i := range e.records {
		wrong = append(wrong, fmt.Sprintf("key %q of %s is left %v", e.records[i].Key, e.records[i].Scope, e.records[i].State))
	}
	if e.calm() {
		unknown := 0
		for n := range e.told {
			unknown += e.told[n].unknown
		}
		if unknown > 0 || len(e.open) > 0 {
			wrong = append(wrong, fmt.Sprintf("nothing failed, and %d clients were told that nobody knows, and %d records had no end", unknown, len(e.open)))
		}
	}
	for n, answered := range e.recovered {
		if answered == 0 {
			wrong = append(wrong, fmt.Sprintf("worker %d has answered nothing with 2xx since the server last went down", n))
		}
	}
	return wrong
}

// ledger is what a payment has taken: its rows, or, where the store's database
// has none, what a ledger has that honours operation ids.
func (e *evidence) ledger(t *traces) []effect {
	if e.rowsKept {
		return t.rows
	}
	runs := slices.Concat(t.before, t.after)
	return runs[:min(1, len(runs))]
}

func (e *evidence) judgePayment(n int, t *traces) []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	p := &e.plan.payments[n]
	runs := slices.Concat(t.before, t.after)
	for _, found := range slices.Concat(runs, t.rows) {
		if found.Operation != p.operation() || found.Account != p.account || found.Key != p.key || found.Amount != p.amount {
			complain("has taken effect as %+v, and is %+v", found, *p)
		}
	}
	if booked := e.ledger(t); len(booked) != 1 {
		complain("is in the ledger %d times", len(booked))
	}
	if most := e.mostRuns(t); len(runs) > most {
		complain("was executed %d times, and may be %d", len(runs), most)
	}
	if e.strict() && len(t.before) > 1 {
		complain("was executed %d times under Hold before anybody settled it", len(t.before))
	}
	finals := e.told[n].finals
	if len(finals) != 1 {
		complain("has %d different final answers: %+v", len(finals), finals)
	}
	for _, f := range finals {
		if f.status != http.StatusCreated {
			complain("was answered %d: %s", f.status, f.body)
			continue
		}
		var said effect
		if err := json.Unmarshal([]byte(f.body), &said); err != nil {
			complain("was answered %q: %v", f.body, err)
		}
		if e.rowsKept && !slices.Contains(t.rows, said) {
			complain("was answered 201 and is lost: there is no row %+v among %+v", said, t.rows)
		}
		if !slices.Contains(runs, said) {
			complain("was answered 201 with %+v, which never ran", said)
		}
	}
	return wrong
}

// strict reports whether nothing may run twice: under Hold, and where not all
// of the work is in a transaction that the database may have undone.
func (e *evidence) strict() bool { return e.hold && e.mode != semel.Atomic }

// calm reports whether nothing failed: no server was struck, and each answered
// in time.
func (e *evidence) calm() bool {
	for kind := range e.answers {
		if strings.HasPrefix(kind, "503 ") {
			return false
		}
	}
	return len(e.plan.strikes) == 0
}

// mostRuns is how often a payment may have been executed: once, but what had no
// end and was resumed by hand. Where something failed an operation runs again
// under Resume, and so does in atomic mode one that the database has undone.
func (e *evidence) mostRuns(t *traces) int {
	switch {
	case e.calm():
		return 1
	case !e.strict():
		return math.MaxInt
	case t.open && len(t.before) > 0:
		return 2
	}
	return 1
}
