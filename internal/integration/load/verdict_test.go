package load

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// witnessed is a load of four payments under Hold of which everything is known.
// The last two had no end when it was over: one had not run and was settled, one
// had and was resumed.
func witnessed() *evidence {
	p := newPlan(1, 4, 1, 0)
	e := &evidence{
		plan: p, mode: semel.Joined, hold: true, rowsKept: true, took: time.Second,
		told: make([]told, len(p.payments)), answers: map[string]int{}, recovered: []int{1, 1, 1, 1},
	}
	first := make([]effect, len(p.payments))
	for n := range p.payments {
		first[n] = effectOf(&p.payments[n], "first")
	}
	again := effectOf(&p.payments[3], "second")
	e.runs = []effect{first[0], first[1], first[3], first[2], again}
	e.runsBefore = 3
	e.rows = []effect{first[0], first[1], first[2], again}
	e.open = []semel.Record{recordOf(&p.payments[2]), recordOf(&p.payments[3])}
	e.settled = 1
	for n, row := range e.rows {
		e.told[n].finals = []final{{status: http.StatusCreated, body: row.text(), executed: 1, replayed: 2}}
	}
	e.told[2].unknown, e.told[3].unknown = 2, 3
	return e
}

func effectOf(p *payment, receipt string) effect {
	return effect{Operation: p.operation(), Account: p.account, Key: p.key, Amount: p.amount, Receipt: receipt}
}

func recordOf(p *payment) semel.Record {
	return semel.Record{Scope: p.scope(), Key: p.key, State: semel.StateUnknown, OperationID: semel.NewOperationID(service, p.scope(), p.key, 0)}
}

// text is the effect as the reply has it.
func (e *effect) text() string {
	text, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestALoadThatWentAsPromisedIsNotComplainedOf(t *testing.T) {
	t.Parallel()
	assert.Equal(t, witnessed().judge(), nil)
	resumed := witnessed()
	resumed.hold, resumed.open = false, nil
	resumed.runsBefore = len(resumed.runs)
	assert.Equal(t, resumed.judge(), nil, "under Resume an operation may run again")
	ledger := witnessed()
	ledger.rowsKept, ledger.rows = false, nil
	assert.Equal(t, ledger.judge(), nil, "of a store without rows the journal is the ledger")
}

func TestWhatIsNotAsPromisedIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breach func(e *evidence)
		want   string
	}{
		"a payment that is executed twice": {
			func(e *evidence) {
				e.runs = slices.Insert(e.runs, 0, effectOf(&e.plan.payments[0], "twice"))
				e.runsBefore++
			},
			"payment 0: was executed 2 times, and may be 1",
		},
		"one that runs twice under Hold although it has no end": {
			func(e *evidence) {
				e.runs = slices.Insert(e.runs, 0, effectOf(&e.plan.payments[3], "twice"))
				e.runsBefore++
			},
			"payment 3: was executed 2 times under Hold before anybody settled it",
		},
		"one that is settled as not applied and runs twice then": {
			func(e *evidence) { e.runs = append(e.runs, effectOf(&e.plan.payments[2], "twice")) },
			"payment 2: was executed 2 times, and may be 1",
		},
		"one that is booked twice": {
			func(e *evidence) { e.rows = append(e.rows, effectOf(&e.plan.payments[1], "twice")) },
			"payment 1: is in the ledger 2 times",
		},
		"a sum that is not what was paid": {
			func(e *evidence) { e.rows = append(e.rows, e.rows[1]) },
			"the ledger has ",
		},
		"a 2xx that is lost": {
			func(e *evidence) { e.rows = e.rows[1:] },
			"payment 0: was answered 201 and is lost",
		},
		"a 2xx that is lost and executed again": {
			func(e *evidence) {
				e.rows[0].Receipt = "second"
				e.runs = append(e.runs, e.rows[0])
			},
			"payment 0: was answered 201 and is lost",
		},
		"a reply that nobody made": {
			func(e *evidence) {
				made := effectOf(&e.plan.payments[0], "made up")
				e.rows[0], e.told[0].finals[0].body = made, made.text()
			},
			"which never ran",
		},
		"an effect that nobody was told of": {
			func(e *evidence) { e.told[0].finals = nil },
			"payment 0: has 0 different final answers",
		},
		"an effect that nobody asked for": {
			func(e *evidence) { e.rows = append(e.rows, effect{Operation: "another"}) },
			"a row is of operation another, which nobody asked for",
		},
		"two replies to one key": {
			func(e *evidence) {
				e.told[1].finals = append(e.told[1].finals, final{status: http.StatusCreated, body: `{"receipt":"other"}`})
			},
			"payment 1: has 2 different final answers",
		},
		"another status than that of the work": {
			func(e *evidence) { e.told[1].finals[0].status = http.StatusOK },
			"payment 1: was answered 200",
		},
		"another amount": {
			func(e *evidence) { e.rows[1].Amount++ },
			"payment 1: has taken effect as",
		},
		"another operation id under the key": {
			func(e *evidence) { e.runs[0].Operation = e.plan.payments[1].operation() },
			"payment 1: has taken effect as",
		},
		"a key that is left open": {
			func(e *evidence) { e.records = []semel.Record{recordOf(&e.plan.payments[1])} },
			"is left unknown",
		},
		"an operation that is resumed although nothing failed": {
			func(e *evidence) { e.hold, e.open, e.plan.strikes = false, nil, nil },
			"payment 3: was executed 2 times, and may be 1",
		},
		"an outcome that nobody knows although nothing failed": {
			func(e *evidence) { e.plan.strikes = nil },
			"nothing failed, and 5 clients were told that nobody knows, and 2 records had no end",
		},
		"a worker that does not recover": {
			func(e *evidence) { e.recovered[2] = 0 },
			"worker 2 has answered nothing with 2xx since the server last went down",
		},
		"an answer that is not documented": {
			func(e *evidence) { e.stray, e.strays = []string{"payment 0 was answered 500"}, 2 },
			"payment 0 was answered 500\nand 1 more of the kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := witnessed()
			c.breach(e)
			assert.Contains(t, strings.Join(e.judge(), "\n"), c.want)
		})
	}
}

func TestAnAnswerThatAClientMayNotBeGiven(t *testing.T) {
	t.Parallel()
	fine := answer{
		status: 503, code: string(semelhttp.ProblemStoreUnavailable), outcome: "released",
		retry: true, retryAfter: 5, mediaType: "application/problem+json",
	}
	assert.Equal(t, fine.problem(true), "")
	for name, c := range map[string]struct {
		change func(a *answer)
		want   string
	}{
		"a 503 without Retry-After":           {func(a *answer) { a.retryAfter = 0 }, "has no Retry-After"},
		"one that forbids to ask again":       {func(a *answer) { a.retry = false }, "may not be sent again"},
		"one that is no problem":              {func(a *answer) { a.mediaType = "text/html" }, "is no problem"},
		"a code that does not belong there":   {func(a *answer) { a.code = "key-reused" }, "is none that a client may be given here"},
		"a 500":                               {func(a *answer) { a.status = 500 }, "is none that a client may be given here"},
		"an outcome that does not belong":     {func(a *answer) { a.outcome = "executed" }, "is none that a client may be given here"},
		"an unknown outcome that is resumed":  {func(a *answer) { a.status, a.code, a.outcome = 409, unknownOutcome, "unknown" }, "is none that a client may be given here"},
		"a key in progress for whoever waits": {func(a *answer) { a.status, a.code, a.outcome, a.retryAfter = 409, "in-progress", "in-progress", 0 }, "has no Retry-After"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := fine
			c.change(&a)
			assert.Contains(t, a.problem(false), c.want)
		})
	}
}

func TestALoadWithoutRepeatsOrOutagesIsNone(t *testing.T) {
	t.Parallel()
	e := witnessed()
	assert.Equal(t, len(e.missing()), 4)
	e.answers = map[string]int{"201 executed": 1, "201 replayed": 1, "409 in-progress (in-progress)": 1, "503 store-unavailable (released)": 1}
	assert.Equal(t, len(e.missing()), 0)
}

func TestAPlanIsDrawnFromItsSeed(t *testing.T) {
	t.Parallel()
	p := newPlan(7, 300, 2, 1)
	assert.Equal(t, newPlan(7, 300, 2, 1), p, "the same seed")
	assert.True(t, newPlan(8, 300, 2, 1).sum() != p.sum(), "another seed is another plan")
	times := make(map[int]int)
	for _, s := range p.sendings {
		times[s.payment]++
	}
	seen := make(map[int]bool)
	for n := range p.payments {
		assert.True(t, times[n] >= leastSends && times[n] <= mostSends, "payment %d is sent %d times", n, times[n])
		seen[times[n]] = true
	}
	assert.Equal(t, len(seen), mostSends-leastSends+1, "numbers of times that something is sent")
	assert.Equal(t, len(p.strikes), 3)
	for i, s := range p.strikes {
		assert.Equal(t, s.freeze, i == 1, "strike %d is a freeze", i)
		assert.True(t, s.at > 0 && s.at < len(p.sendings)-len(p.payments)/2, "strike %d comes at sending %d of %d", i, s.at, len(p.sendings))
	}
}
