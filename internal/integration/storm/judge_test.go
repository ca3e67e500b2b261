package storm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

const (
	// clockGrain allows for the store's clock, which counts milliseconds, and
	// for the moment between a process's end and the test's noticing it.
	clockGrain = 50 * time.Millisecond
	// orphanWithin is how much longer than its supervisor a service may work:
	// it has a second to finish requests, and a moment to notice and to end.
	orphanWithin = 3 * time.Second
)

// inProgress is the code of a problem that says that somebody holds the key.
const inProgress = "in-progress"

// evidence is what a run leaves behind.
type evidence struct {
	plan   plan
	orders []*placed
	log    *journal
	begun  time.Time
	kills  map[string]int
	hits   []time.Time

	payments []row                // that the service has stored
	charges  []row                // that the bank has taken
	asks     map[string]int       // of the bank, by key
	records  map[int]semel.Record // by the order's number
	wrong    []string             // what was seen before anything was judged
}

// row is a payment or a charge. Its recipient tells whose order it is, through
// whatever door that came.
type row struct {
	id, charge string
	amount     int64
	recipient  string
}

// read reads the files, which nobody has open any more.
func (e *evidence) read(ctx context.Context, dir string) error {
	service, err := sqlstore.OpenSQLite("sqlite", dir+"service.db")
	if err != nil {
		return err
	}
	defer service.Close()
	bank, err := sqlstore.OpenSQLite("sqlite", dir+"bank.db")
	if err != nil {
		return err
	}
	defer bank.Close()
	return errors.Join(
		readRows(ctx, service.Read, &e.payments, `SELECT id, charge_id, amount, recipient_id FROM demo_payments`),
		readRows(ctx, bank.Read, &e.charges, `SELECT id, key, amount, recipient_id FROM charges`),
		e.readAsks(ctx, bank.Read),
		e.readRecords(ctx, service),
		e.checkFiles(ctx, dir),
	)
}

// checkFiles checks every database of the run.
func (e *evidence) checkFiles(ctx context.Context, dir string) error {
	files, err := filepath.Glob(dir + "*.db")
	if err != nil {
		return err
	}
	for _, file := range files {
		sound, err := integrity(ctx, file)
		if err != nil {
			return err
		}
		if sound != "ok" {
			e.wrong = append(e.wrong, fmt.Sprintf("%s: integrity_check says %q", filepath.Base(file), sound))
		}
	}
	return nil
}

// integrity returns what SQLite says of a file; a sound one is "ok".
func integrity(ctx context.Context, file string) (sound string, err error) {
	h, err := sqlstore.OpenSQLite("sqlite", file)
	if err != nil {
		return "", err
	}
	defer h.Close()
	err = h.Read.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&sound)
	return sound, err
}

func readRows(ctx context.Context, db *sql.DB, into *[]row, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.charge, &r.amount, &r.recipient); err != nil {
			return err
		}
		*into = append(*into, r)
	}
	return rows.Err()
}

func (e *evidence) readAsks(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT key, count(*) FROM asks GROUP BY key`)
	if err != nil {
		return err
	}
	defer rows.Close()
	e.asks = make(map[string]int)
	for rows.Next() {
		var (
			key string
			n   int
		)
		if err := rows.Scan(&key, &n); err != nil {
			return err
		}
		e.asks[key] = n
	}
	return rows.Err()
}

func (e *evidence) readRecords(ctx context.Context, h *sqlstore.Handles) error {
	store, err := sqlstore.New(ctx, h, sqlstore.Config{})
	if err != nil {
		return err
	}
	e.records = make(map[int]semel.Record)
	for _, p := range e.orders {
		rec, err := store.Get(ctx, p.scope(), p.key)
		if err != nil {
			return err
		}
		e.records[p.number] = rec
	}
	return nil
}

// scope and operation are what the service makes of an order.
func (o *order) scope() string { return "payments:" + o.customer }

func (o *order) operation() string {
	return semel.NewOperationID("payments", o.scope(), o.key, 0).String()
}

// breach is what was not as promised: of one order, or of the whole run.
type breach struct {
	order *placed // nil where it is no single order's
	what  []string
}

// judge returns what was not as promised.
func (e *evidence) judge() []breach {
	var found []breach
	paid, sum := 0, int64(0)
	for _, p := range e.orders {
		if p.recipient != declined {
			paid++
			sum += p.amount
		}
		if what := e.judgeOrder(p); len(what) > 0 {
			found = append(found, breach{p, what})
		}
	}
	taken := int64(0)
	for _, c := range e.charges {
		taken += c.amount
	}
	all := slices.Clone(e.wrong)
	for _, line := range e.log.about("panic") {
		all = append(all, "a process panicked: "+line)
	}
	if len(e.payments) != paid || len(e.charges) != paid || taken != sum {
		all = append(all, fmt.Sprintf("%d payments are stored, and %d was taken in %d charges; it should be %d for %d orders",
			len(e.payments), taken, len(e.charges), sum, paid))
	}
	if len(all) > 0 {
		found = append(found, breach{what: all})
	}
	return found
}

func (e *evidence) judgeOrder(p *placed) []string {
	want, times := http.StatusCreated, 1
	if p.recipient == declined {
		want, times = http.StatusPaymentRequired, 0
	}
	wrong := judgeAnswers(p, want)
	if state := e.records[p.number].State; state != semel.StateDone {
		wrong = append(wrong, fmt.Sprintf("its record is left %v", state))
	}
	wrong = append(wrong, e.judgeAttempts(p)...)
	wrong = append(wrong, judgeRows(p, "stored", e.payments, times)...)
	return append(wrong, judgeRows(p, "charged", e.charges, times)...)
}

// judgeAnswers looks at what the order's clients were told. All of them should
// have been answered with the status want in the end.
func judgeAnswers(p *placed, want int) []string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	tries := p.history()
	first, answered, ok := firstAnswer(tries)
	for n := lastLook; n < len(p.clients); n++ {
		if a, ok := lastAnswer(tries, n); !ok {
			complain("client %d was not answered within %v of the last thing that went wrong, but last with %v", n, answerWithin, a)
		}
	}
	longest := time.Duration(0)
	for _, t := range tries {
		longest = max(longest, heldFor(tries, t))
		a := t.answer
		switch {
		case a.final() && a.status != want:
			complain("client %d was answered %v, not %d", t.client, a, want)
		case a.final() && !a.same(first):
			complain("was answered %+v and %+v", first, a)
		case a.final() && t.client == lastLook && !a.replayed:
			complain("ran again when all was quiet: its answer was no replay")
		case a.status == http.StatusConflict && a.code != inProgress:
			complain("client %d was answered %v", t.client, a)
		case a.status == http.StatusConflict && ok && t.sent.After(answered):
			complain("was in progress %v after it was answered", t.sent.Sub(answered))
		}
	}
	if longest > lease+clockGrain {
		complain("was in progress %v after whoever held it had ended", longest)
	}
	return wrong
}

// judgeRows looks for the order in rows, where it should be so many times.
func judgeRows(p *placed, what string, rows []row, times int) []string {
	var wrong []string
	found := 0
	for _, r := range rows {
		if r.recipient != p.recipient {
			continue
		}
		found++
		if r.id != p.operation() || r.charge != p.operation() || r.amount != p.amount {
			wrong = append(wrong, fmt.Sprintf("was %s as %+v, not %d under its operation id", what, r, p.amount))
		}
	}
	if found != times {
		wrong = append(wrong, fmt.Sprintf("was %s %d times, not %d", what, found, times))
	}
	return wrong
}

// firstAnswer returns the first final answer and when it came.
func firstAnswer(tries []try) (first answer, at time.Time, ok bool) {
	for _, t := range tries {
		if t.answer.final() && (!ok || t.ended.Before(at)) {
			first, at, ok = t.answer, t.ended, true
		}
	}
	return first, at, ok
}

// lastAnswer returns what client n was told last, and whether that was final.
func lastAnswer(tries []try, n int) (answer, bool) {
	var last answer
	for _, t := range tries {
		if t.client == n {
			last = t.answer
		}
	}
	return last, last.final()
}

// heldFor returns how long before t was sent everybody who may have held the
// key had ended, if t was told that somebody does.
func heldFor(tries []try, t try) time.Duration {
	if t.answer.status != http.StatusConflict {
		return 0
	}
	var last time.Time // zero, and so long ago, where nobody may have
	for _, holder := range tries {
		if until, ok := holder.heldUntil(); ok && holder.sent.Before(t.ended) && until.After(last) {
			last = until
		}
	}
	return t.sent.Sub(last)
}

// heldUntil returns when the attempt that t may have started had ended for
// sure, and whether t may have started one.
func (t *try) heldUntil() (time.Time, bool) {
	forever := t.ended.Add(time.Hour)
	// Whoever is told so at once holds nothing. An attempt that was taken over
	// is told the same at its end, and takes longer than a lease.
	busy := t.answer.status == http.StatusConflict && t.ended.Sub(t.sent) < lease/2
	switch {
	case !t.whole || busy:
		return time.Time{}, false
	case t.answer.status != 0:
		return t.ended, true
	case t.life != nil:
		return t.life.ended, true
	case t.left:
		return forever, true
	}
	return t.ended.Add(orphanWithin), true
}
