package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// String returns the figures of a run on one line.
func (e *evidence) String() string {
	restarts, freezes := e.struck()
	executed := make(map[string]bool)
	for i := range e.runs {
		executed[e.runs[i].Operation] = true
	}
	unknown := 0
	for i := range e.told {
		if e.told[i].unknown > 0 {
			unknown++
		}
	}
	connections := ""
	if e.connections > 0 {
		connections = fmt.Sprintf("%d connections to the server, ", e.connections)
	}
	requests := e.requests()
	return fmt.Sprintf("seed %d: %d keys sent %d times in %d requests, %d executed, %d of the runs repeated; answers: %s; "+
		"%s%d restarts, %d freezes, longest without a 2xx %v, longest that the server was down %v; %d keys were told to be unknown, %d open in the end (%d settled as not applied, the others resumed); %v, %.0f requests/s",
		e.plan.seed, len(e.plan.payments), len(e.plan.sendings), requests, len(executed), len(e.runs)-len(executed), e.counts(),
		connections, restarts, freezes, e.outage.Round(time.Millisecond), e.down.Round(time.Millisecond), unknown, len(e.open), e.settled,
		e.took.Round(100*time.Millisecond), float64(requests)/e.took.Seconds())
}

// struck counts what the plan has.
func (e *evidence) struck() (restarts, freezes int) {
	for _, s := range e.plan.strikes {
		if s.freeze {
			freezes++
		} else {
			restarts++
		}
	}
	return restarts, freezes
}

func (e *evidence) requests() int {
	total := 0
	for _, n := range e.answers {
		total += n
	}
	return total
}

func (e *evidence) counts() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(e.answers)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, e.answers[kind]))
	}
	return strings.Join(parts, ", ")
}

// missing returns what should have happened and did not: a load without it
// proves nothing.
func (e *evidence) missing() []string {
	unavailable := e.answers["503 store-unavailable (released)"] + e.answers["503 store-unavailable (unknown)"]
	happened := map[string]int{
		"first answers":                          e.answers["201 executed"],
		"replays":                                e.answers["201 replayed"],
		"requests that met another of their key": e.answers["409 in-progress (in-progress)"],
	}
	if restarts, _ := e.struck(); restarts > 0 {
		happened["answers while the server was down"] = unavailable
	}
	maps.DeleteFunc(happened, func(_ string, n int) bool { return n > 0 })
	return slices.Sorted(maps.Keys(happened))
}
