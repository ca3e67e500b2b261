package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// logged is a request in GET /demo/log.
type logged struct {
	Door   payments.Door  `json:"door"`
	Fault  payments.Fault `json:"fault"`
	Status int            `json:"status"`
	Ended  bool           `json:"ended"`
	Lines  []string       `json:"lines"`
}

// told is a log line as the page's diagram reads it.
type told struct {
	Time     time.Time `json:"time"`
	Process  string    `json:"process"`
	Msg      string    `json:"msg"`
	Event    string    `json:"event"`
	Attempt  int       `json:"attempt"`
	Key      string    `json:"key"`
	Found    bool      `json:"found"`
	Charge   string    `json:"charge_key"`
	Answer   string    `json:"answer"`
	Amount   int       `json:"amount"`
	Status   int       `json:"status"`
	Outcome  string    `json:"outcome"`
	Replayed bool      `json:"replayed"`
	Door     string    `json:"door"`
	Which    string    `json:"which"`
	PID      int       `json:"pid"`
	How      string    `json:"how"`
}

// step is the line in a few words, with all that the diagram says of it. A
// summary of what other lines tell is no step.
func (l told) step(t *testing.T) string {
	t.Helper()
	what := ""
	switch l.Msg {
	case "request passed on":
		assert.True(t, l.Key != "" && l.Key != "k1", "a key that is sent is shown, and not as it is: %q", l.Key)
	case "semel: event":
		what = fmt.Sprintf(" %s, attempt %d", l.Event, l.Attempt)
	case "semel: request":
		return ""
	case "looked for the key":
		what = fmt.Sprintf(" found=%v", l.Found)
	case "asks the bank":
		what = fmt.Sprintf(" for %d", l.Amount)
	case "charge":
		what = fmt.Sprintf(" %s, %d", l.Answer, l.Amount)
	case "the bank answered", "saved the key":
		what = fmt.Sprintf(" %d", l.Status)
	case "reply passed on":
		what = strings.TrimRight(fmt.Sprintf(" %d %s", l.Status, l.Outcome), " ")
		if l.Replayed {
			what += ", replayed"
		}
	case "process ended":
		assert.True(t, l.PID > 0, "the number of the process that ended")
		what = " " + l.Which + ", " + l.How
	}
	return l.Process + ": " + l.Msg + what
}

// story returns what the log has of a request, in the order of its time, and
// the ids that the bank was asked under.
func (r logged) story(t *testing.T) (steps []string, charges []string) {
	t.Helper()
	var lines []told
	for _, raw := range r.Lines {
		var l told
		assert.NoError(t, json.Unmarshal([]byte(raw), &l), "%s", raw)
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b told) int { return a.Time.Compare(b.Time) })
	for _, l := range lines {
		if step := l.step(t); step != "" {
			steps = append(steps, step)
		}
		if l.Charge != "" {
			charges = append(charges, l.Charge)
		}
	}
	// Who notices first that a process died is not decided.
	if n := len(steps); n >= 2 && strings.HasPrefix(steps[n-2], "supervisor: ") {
		steps[n-2], steps[n-1] = steps[n-1], steps[n-2]
	}
	return steps, slices.Compact(charges)
}

// The steps of a request that is killed after the charge, behind whatever
// stands before the business function.
var killed = []string{
	"service: asks the bank for 2500",
	"bank: charge taken, 2500",
	"service: the bank answered 201",
	"front: connection to the process broke",
	"supervisor: process ended service, signal: killed",
}

// The steps of a repeat that charges again.
var charged = []string{
	"service: asks the bank for 2500",
	"bank: charge taken, 2500",
	"service: the bank answered 201",
	"service: paid",
}

// all are steps after each other, each a string or several.
func all(steps ...any) []string {
	out := []string{"front: request passed on"}
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			out = append(out, s)
		case []string:
			out = append(out, s...)
		}
	}
	return out
}

// TestTheLogTellsAKillAfterTheCharge holds what the page draws: its diagrams
// are these lines and nothing else.
func TestTheLogTellsAKillAfterTheCharge(t *testing.T) {
	t.Parallel()
	for door, c := range map[payments.Door]struct{ first, between, last []string }{
		payments.Keyed: {
			first:   all("service: semel: event claimed, attempt 1", killed),
			between: all("service: semel: event in_progress, attempt 1", "front: reply passed on 409 in-progress"),
			last: all(
				"service: semel: event takeover, attempt 2",
				"service: asks the bank for 2500",
				"bank: charge already taken, 2500",
				"service: the bank answered 201",
				"service: paid",
				"service: semel: event done, attempt 2",
				"front: reply passed on 201 executed",
			),
		},
		payments.Naive: {
			first: all("service: looked for the key found=false", killed),
			last:  all("service: looked for the key found=false", charged, "service: saved the key 201", "front: reply passed on 201"),
		},
		payments.Keyless: {first: all(killed), last: all(charged, "front: reply passed on 201")},
	} {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			d := startDemo(t)
			// So long that a busy machine renews it in time.
			assert.Equal(t, d.send(t, http.MethodPut, "/demo/service", `{"lease":"3s"}`).Status, http.StatusOK)
			d.arm(t, payments.KilledAfterCharge)
			pay := func() answer {
				return d.send(t, http.MethodPost, door.Path(), order, payments.HeaderKey, "k1", payments.HeaderOrder, "o1")
			}
			assert.Equal(t, pay().Status, 0, "status of the killed request")
			d.told(t, len(c.first)) // all have noticed: what is on its way meanwhile is told of the death too
			assert.Eventually(t, "a payment", func() bool {
				time.Sleep(100 * time.Millisecond) // the log has the last 100 requests, and is to have all of these
				return pay().Status == http.StatusCreated
			})

			log := d.told(t, len(c.last))
			first, firstCharge := log[0].story(t)
			assert.Equal(t, first, c.first)
			assert.Equal(t, log[0].Fault, payments.KilledAfterCharge)
			for _, r := range log[1 : len(log)-1] {
				if r.Status == http.StatusConflict {
					between, _ := r.story(t)
					assert.Equal(t, between, c.between)
				}
			}
			last, lastCharge := log[len(log)-1].story(t)
			assert.Equal(t, last, c.last)
			assert.Equal(t, len(firstCharge)+len(lastCharge), 2, "ids that the bank was asked under: %v %v", firstCharge, lastCharge)
			assert.Equal(t, firstCharge[0] == lastCharge[0], door == payments.Keyed, "the repeat asks the bank under the same id")
		})
	}
}

// told reads the log, once it has so many steps of the last request: lines come
// from several processes, and none waits for them.
func (d *running) told(t *testing.T, steps int) []logged {
	t.Helper()
	var log []logged
	assert.Eventually(t, "the log is complete", func() bool {
		log = nil
		a := d.send(t, http.MethodGet, "/demo/log", "")
		assert.NoError(t, json.Unmarshal([]byte(a.Body), &log), "%s", a.Body)
		last := log[len(log)-1]
		got, _ := last.story(t)
		return last.Ended && len(got) >= steps
	})
	return log
}
