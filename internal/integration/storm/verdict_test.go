package storm

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// witnessed is a run of which everything is known: one order is paid although
// its first service was killed, and one is declined.
type witnessed struct{ evidence }

// died is when the service was killed that had the first request.
var died = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWitnessed() *witnessed {
	first, second := newOrder(1, 0), newOrder(1, 1)
	first.clients, second.clients = []client{{}}, []client{{}}
	second.recipient = declined
	created := answer{status: http.StatusCreated, location: "/payments/1", body: "paid"}
	refused := answer{status: http.StatusPaymentRequired, body: "declined"}
	w := &witnessed{evidence{
		orders: []*placed{{order: first}, {order: second}},
		records: map[int]semel.Record{
			0: {State: semel.StateDone},
			1: {State: semel.StateDone},
		},
	}}
	killed := &life{ended: died}
	w.try(0, try{sent: died.Add(-time.Second), ended: died, whole: true, life: killed, err: errors.New("cut")})
	w.answer(0, 0, lease-10*time.Millisecond, answer{status: http.StatusConflict, code: inProgress})
	w.answer(0, 0, lease, created)
	w.answer(0, lastLook, 2*lease, replay(created))
	w.answer(1, 0, 0, refused)
	w.answer(1, lastLook, 2*lease, replay(refused))
	id := first.operation()
	w.log = &journal{}
	w.records[0] = semel.Record{State: semel.StateDone, Attempt: 2}
	w.hits = []time.Time{died}
	w.logs(id, died.Add(-time.Second), "claimed", 1)
	w.logs(id, died.Add(lease), "takeover", 2)
	w.logs(id, died.Add(lease), "done", 2)
	w.payments = []row{{id: id, charge: id, amount: first.amount, recipient: first.recipient}}
	w.charges = slices.Clone(w.payments)
	return w
}

// logs notes what a service has logged.
func (w *witnessed) logs(operation string, at time.Time, event string, attempt int) {
	line := fmt.Sprintf(`{"time":%q,"msg":"semel: event","event":%q,"attempt":%d,"operation_id":%q}`, at.Format(time.RFC3339Nano), event, attempt, operation)
	w.log.of("service").Write([]byte(line + "\n"))
}

func replay(a answer) answer {
	a.replayed = true
	return a
}

func (w *witnessed) try(order int, t try) { w.orders[order].note(t) }

// answer notes a request that was sent some time after died and answered a.
func (w *witnessed) answer(order, client int, after time.Duration, a answer) {
	sent := died.Add(after)
	w.try(order, try{client: client, sent: sent, ended: sent.Add(time.Millisecond), whole: true, life: &life{ended: died.Add(time.Hour)}, answer: a})
}

// change changes the tries of an order that ok picks.
func (w *witnessed) change(order int, ok func(try) bool, change func(*try)) {
	for i, t := range w.orders[order].tries {
		if ok(t) {
			change(&w.orders[order].tries[i])
		}
	}
}

func isLook(t try) bool   { return t.client == lastLook }
func isAnswer(t try) bool { return t.answer.final() && !isLook(t) }
func isBusy(t try) bool   { return t.answer.status == http.StatusConflict }

func TestARunAsItShouldBeIsExact(t *testing.T) {
	t.Parallel()
	assert.Equal(t, len(newWitnessed().judge()), 0)
}

func TestEveryBreachIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breach func(w *witnessed)
		want   string
	}{
		"an order without an answer": {
			func(w *witnessed) { w.change(0, isAnswer, func(t *try) { t.answer = answer{} }) },
			"client 0 was not answered",
		},
		"an order without any answer at all": {
			func(w *witnessed) { w.orders[0].tries = nil },
			"client 0 was not answered within 1m0s",
		},
		"two answers to one key": {
			func(w *witnessed) { w.change(0, isLook, func(t *try) { t.answer.body = "paid again" }) },
			"was answered",
		},
		"an answer with another Location": {
			func(w *witnessed) { w.change(0, isLook, func(t *try) { t.answer.location = "/payments/2" }) },
			"was answered",
		},
		"a refusal": {
			func(w *witnessed) { w.answer(0, 0, lease, answer{status: 422, code: "key-reused"}) },
			"was answered 422 key-reused, not 201",
		},
		"a declined order that is paid": {
			func(w *witnessed) { w.change(1, isAnswer, func(t *try) { t.answer.status = http.StatusCreated }) },
			"was answered 201, not 402",
		},
		"an outcome that nobody knows": {
			func(w *witnessed) { w.change(0, isBusy, func(t *try) { t.answer.code = "outcome-unknown" }) },
			"was answered 409 outcome-unknown",
		},
		"a key that is stuck": {
			func(w *witnessed) { w.change(0, isBusy, func(t *try) { t.sent = died.Add(lease + 2*clockGrain) }) },
			"was in progress 2.1s after whoever held it had ended",
		},
		"a key that nobody can hold": {
			func(w *witnessed) { w.orders[0].tries = w.orders[0].tries[1:] },
			"after whoever held it had ended",
		},
		"a key that one holds who was told at once that another does": {
			func(w *witnessed) {
				first := &w.orders[0].tries[0]
				first.answer, first.ended = answer{status: http.StatusConflict, code: inProgress}, first.sent.Add(time.Millisecond)
			},
			"after whoever held it had ended",
		},
		"a key in progress after its answer": {
			func(w *witnessed) { w.answer(0, 0, 2*lease, answer{status: http.StatusConflict, code: inProgress}) },
			"was in progress 1.999s after it was answered",
		},
		"work that runs when all is quiet": {
			func(w *witnessed) { w.change(0, isLook, func(t *try) { t.answer.replayed = false }) },
			"its answer was no replay",
		},
		"a record that is left running": {
			func(w *witnessed) { w.records[0] = semel.Record{State: semel.StateRunning} },
			"its record is left running",
		},
		"an attempt that finishes although another has taken over": {
			func(w *witnessed) { w.logs(w.orders[0].operation(), died.Add(lease), "done", 1) },
			"attempt 1 finished, although attempt 2 had taken over",
		},
		"an attempt that writes an end although another has taken over": {
			func(w *witnessed) {
				w.logs(w.orders[0].operation(), died.Add(lease+strikeGrain+time.Millisecond), "unknown", 1)
			},
			"attempt 1 ended as unknown 201ms after attempt 2 had taken over",
		},
		"an attempt that is taken over while it runs": {
			func(w *witnessed) {
				w.logs(w.orders[1].operation(), died.Add(time.Minute), "claimed", 1)
				w.logs(w.orders[1].operation(), died.Add(time.Minute+time.Millisecond), "takeover", 2)
			},
			"attempt 2 took over 1ms after attempt 1 had begun, whose lease is 2s",
		},
		"a process that panics": {
			func(w *witnessed) { w.log.of("service").Write([]byte("http: panic serving 127.0.0.1:1: oops\n")) },
			"a process panicked: service: http: panic serving",
		},
		"a payment that is lost":           {func(w *witnessed) { w.payments = nil }, "was stored 0 times, not 1"},
		"a payment that is stored twice":   {func(w *witnessed) { w.payments = append(w.payments, w.payments...) }, "was stored 2 times, not 1"},
		"a payment under another id":       {func(w *witnessed) { w.payments[0].id = "x" }, "stored as"},
		"a payment with another charge":    {func(w *witnessed) { w.payments[0].charge = "x" }, "stored as"},
		"a payment of another amount":      {func(w *witnessed) { w.payments[0].amount++ }, "stored as"},
		"an order that is not charged":     {func(w *witnessed) { w.charges = nil }, "was charged 0 times, not 1"},
		"an order that is charged twice":   {func(w *witnessed) { w.charges = append(w.charges, w.charges...) }, "was charged 2 times, not 1"},
		"a declined order that is charged": {func(w *witnessed) { w.charges = append(w.charges, row{recipient: declined}) }, "was charged 1 times, not 0"},
		"money taken for no order": {
			func(w *witnessed) { w.charges = append(w.charges, row{amount: 1, recipient: "somebody"}) },
			"2501 was taken in 2 charges; it should be 2500 for 1 orders",
		},
		"a file that is not sound": {
			func(w *witnessed) { w.wrong = []string{`bank.db: integrity_check says "row 3 missing"`} },
			"row 3 missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWitnessed()
			c.breach(w)
			var text strings.Builder
			for _, b := range w.judge() {
				fmt.Fprintln(&text, strings.Join(b.what, "\n"))
			}
			assert.Contains(t, text.String(), c.want)
		})
	}
}

func TestAnAttemptThatWasTakenOverHeldTheKeyThoughItIsToldThatAnotherDoes(t *testing.T) {
	t.Parallel()
	w := newWitnessed()
	first := &w.orders[0].tries[0]
	first.answer, first.ended = answer{status: http.StatusConflict, code: inProgress}, first.sent.Add(lease)
	w.change(0, isBusy, func(t *try) { t.life = nil })
	assert.Equal(t, len(w.judge()), 0)
}

func TestATakeoverIsTheOwnersRightOnceTheAttemptHasEndedOrSomethingStruck(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(w *witnessed, at time.Time){
		"the attempt before said that it does not know": func(w *witnessed, at time.Time) { w.logs(w.orders[0].operation(), at, "unknown", 3) },
		"a service was killed":                          func(w *witnessed, at time.Time) { w.hits = append(w.hits, at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, at := newWitnessed(), died.Add(time.Minute)
			w.records[0] = semel.Record{State: semel.StateDone, Attempt: 2}
			w.logs(w.orders[0].operation(), at, "takeover", 3)
			before(w, at.Add(time.Millisecond))
			w.logs(w.orders[0].operation(), at.Add(2*time.Millisecond), "takeover", 4)
			assert.Equal(t, len(w.judge()), 0)
		})
	}
}

func TestAStormWithoutKillsIsNone(t *testing.T) {
	t.Parallel()
	// whole is a storm in which everything has happened.
	whole := func(runs int) *figures {
		f := newFigures(runs)
		f.runs, f.unanswered, f.answers["201 replayed"] = 1, 1, 1
		f.takeovers, f.superseded, f.askedAgain = 1, 1, 1
		for _, strike := range strikes() {
			f.kills[strike] = 1
		}
		return f
	}
	assert.Equal(t, len(whole(longRuns).missing()), 0)
	assert.Equal(t, len(newFigures(shortRuns).missing()), 6)
	assert.Equal(t, len(newFigures(longRuns).missing()), 7+len(strikes()))

	t.Run("a long one has each kind of strike, a short one some", func(t *testing.T) {
		t.Parallel()
		for _, strike := range strikes() {
			for runs, want := range map[int][]string{longRuns: {"strikes (" + strike + ")"}, shortRuns: nil} {
				f := whole(runs)
				delete(f.kills, strike)
				assert.Equal(t, f.missing(), want)
			}
		}
	})
	t.Run("a long one has attempts superseded at work", func(t *testing.T) {
		t.Parallel()
		for runs, want := range map[int][]string{longRuns: {"attempts superseded at work"}, shortRuns: nil} {
			f := whole(runs)
			f.superseded = 0
			assert.Equal(t, f.missing(), want)
		}
	})
}

func TestAFileThatIsNotSoundIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + string(filepath.Separator)
	h, err := sqlstore.OpenSQLite("sqlite", dir+"bank.db")
	assert.NoError(t, err)
	for _, statement := range []string{
		`CREATE TABLE charges (door TEXT)`,
		`INSERT INTO charges VALUES (NULL)`,
		`PRAGMA writable_schema = ON`,
		`UPDATE sqlite_schema SET sql = 'CREATE TABLE charges (door TEXT NOT NULL)'`,
	} {
		_, err = h.Write.ExecContext(t.Context(), statement)
		assert.NoError(t, err)
	}
	assert.NoError(t, h.Close())
	var e evidence
	assert.NoError(t, e.checkFiles(t.Context(), dir))
	assert.Equal(t, e.wrong, []string{`bank.db: integrity_check says "NULL value in charges.door"`})
}

func TestAProcessThatIsLeftBehindIsFoundAndEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + string(filepath.Separator)
	cmd := exec.CommandContext(t.Context(), program(t), "demo-process", "bank", "--file="+dir+"bank.db")
	stdin, err := cmd.StdinPipe() // it lives as long as this is open
	assert.NoError(t, err)
	defer stdin.Close()
	assert.NoError(t, cmd.Start())
	w := &world{dir: dir}
	wrong := w.end(time.Second)
	assert.Equal(t, len(wrong), 1, "%v", wrong)
	assert.Contains(t, wrong[0].Error(), fmt.Sprintf("process %d was left behind", cmd.Process.Pid))
	cmd.Wait() //nolint:errcheck // how it ended is in its state.
	assert.Equal(t, cmd.ProcessState.String(), "signal: killed")
}
