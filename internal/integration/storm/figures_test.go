package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// enoughBroken is how many broken runs there are reported before the storm ends.
const enoughBroken = 5

// figures add up what happened in all runs.
type figures struct {
	mu         sync.Mutex
	planned    int // runs
	runs       int
	broken     int // runs with a breach
	supervised int
	kills      map[string]int
	orders     int
	requests   int
	unanswered int // requests
	answers    map[string]int
	takeovers  int             // attempts after an order's first
	superseded int             // attempts that found out that they were
	askedAgain int             // charges that the bank was asked for again
	held       time.Duration   // longest in progress after its holder's end
	recovered  []time.Duration // from the last kill to the answer, per client that lived through one
}

func newFigures(planned int) *figures {
	return &figures{planned: planned, kills: make(map[string]int), answers: make(map[string]int)}
}

// add adds a run.
func (f *figures) add(e *evidence, breaches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs++
	if breaches > 0 {
		f.broken++
	}
	if e.plan.supervised {
		f.supervised++
	}
	for what, n := range e.kills {
		f.kills[what] += n
	}
	f.orders += len(e.orders)
	for _, p := range e.orders {
		f.addOrder(e, p)
	}
}

// spoil adds a run that could not be played.
func (f *figures) spoil() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs++
	f.broken++
}

func (f *figures) addOrder(e *evidence, p *placed) {
	tries := p.history()
	for _, t := range tries {
		f.requests++
		if t.err != nil {
			f.unanswered++
		} else {
			f.answers[t.answer.String()]++
		}
		f.held = max(f.held, heldFor(tries, t))
	}
	for n := range p.clients {
		if after, ok := afterKill(e.hits, tries, n); ok {
			f.recovered = append(f.recovered, after)
		}
	}
	for _, ev := range e.log.events(p.operation()) {
		if ev.Kind == "lease_lost" {
			f.superseded++
		}
	}
	f.takeovers += int(max(0, e.records[p.number].Attempt-1))
	f.askedAgain += max(0, e.asks[p.operation()]-1)
}

// afterKill returns how long after the last kill before its answer client n
// had it, if there was a kill after its first try.
func afterKill(hits []time.Time, tries []try, n int) (time.Duration, bool) {
	var first, answered time.Time
	for _, t := range tries {
		if t.client != n {
			continue
		}
		if first.IsZero() {
			first = t.sent
		}
		if t.answer.final() {
			answered = t.ended
		}
	}
	var last time.Time
	for _, hit := range hits {
		if hit.After(first) && hit.Before(answered) && hit.After(last) {
			last = hit
		}
	}
	return answered.Sub(last), !last.IsZero()
}

// missing returns what should have happened in so many runs and did not: a storm
// without it proves nothing.
func (f *figures) missing() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	happened := map[string]int{
		"runs": f.runs, "strikes": sum(f.kills), "requests without an answer": f.unanswered, "replays": f.answers["201 replayed"],
		"takeovers": f.takeovers, "charges asked for again": f.askedAgain,
	}
	if f.planned >= longRuns { // on a busy machine a few runs may have none
		happened["attempts superseded at work"] = f.superseded
		for _, strike := range strikes() {
			happened["strikes ("+strike+")"] = f.kills[strike]
		}
	}
	maps.DeleteFunc(happened, func(_ string, n int) bool { return n > 0 })
	return slices.Sorted(maps.Keys(happened))
}

// worthGoingOn reports whether there are not enough broken runs yet.
func (f *figures) worthGoingOn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken < enoughBroken
}

// String returns all figures on one line.
func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.recovered)
	at := func(share float64) time.Duration {
		if len(f.recovered) == 0 {
			return 0
		}
		return f.recovered[int(share*float64(len(f.recovered)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d of %d runs exact (%d under semel demo); %d strikes (%s); %d orders in %d requests, %d of them unanswered; answers: %s; "+
		"%d takeovers, %d attempts superseded at work, %d charges asked for again; answered after the last kill: median %v, 99 %% %v, longest %v; longest in progress after its holder's end %v",
		f.runs-f.broken, f.runs, f.supervised, sum(f.kills), counts(f.kills), f.orders, f.requests, f.unanswered, counts(f.answers),
		f.takeovers, f.superseded, f.askedAgain, at(.5), at(.99), at(1), f.held.Round(time.Millisecond))
}

// short returns how far the runs are.
func (f *figures) short() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%d of %d runs, %d not exact, %d strikes, %d orders", f.runs, f.planned, f.broken, sum(f.kills), f.orders)
}

func sum(n map[string]int) int {
	total := 0
	for _, some := range n {
		total += some
	}
	return total
}

func counts(n map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, n[what]))
	}
	return strings.Join(parts, ", ")
}

// report tells what b is about, for whoever has to find out why.
func (e *evidence) report(b breach) string {
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d, %d services", e.plan.seed, e.plan.services)
	if e.plan.supervised {
		text.WriteString(", one of them under semel demo")
	}
	if b.order != nil {
		fmt.Fprintf(&text, ": order %d, operation %s", b.order.number, b.order.operation())
	}
	for _, what := range b.what {
		fmt.Fprintf(&text, "\n  %s", what)
	}
	if b.order == nil {
		return text.String()
	}
	since := func(t time.Time) string { return fmt.Sprintf("%.3f s", t.Sub(e.begun).Seconds()) }
	for _, t := range b.order.history() {
		fmt.Fprintf(&text, "\n  %s to %s: client %d asked %s", since(t.sent), since(t.ended), t.client, t.to)
		if t.mishap.kind != nothing {
			fmt.Fprintf(&text, " [%s after %v]", t.mishap.kind, t.mishap.after.Round(time.Millisecond))
		}
		if t.err != nil {
			fmt.Fprintf(&text, ": no answer: %v", t.err)
		} else {
			fmt.Fprintf(&text, ": %v", t.answer)
		}
	}
	for _, line := range e.log.about(b.order.operation()) {
		fmt.Fprintf(&text, "\n  %s", line)
	}
	return text.String()
}
