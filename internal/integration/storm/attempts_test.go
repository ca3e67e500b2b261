package storm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// strikeGrain allows for the time between a strike and its being noted, and
// between what a service does and its line about it.
const strikeGrain = 200 * time.Millisecond

// event is what a service has logged about an attempt.
type event struct {
	At      time.Time `json:"time"`
	Kind    string    `json:"event"`
	Attempt int64     `json:"attempt"`
}

// events returns what the services have logged about the attempts at an
// operation, in the order of its time.
func (j *journal) events(operation string) []event {
	var found []event
	for _, line := range j.about(operation) {
		_, text, _ := strings.Cut(line, "{")
		var e event
		if json.Unmarshal([]byte("{"+text), &e) == nil && e.Kind != "" {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b event) int { return a.At.Compare(b.At) })
	return found
}

// judgeAttempts looks at what the services themselves say of the order. Its
// payments and charges cannot tell whether a fence or a lease was passed over,
// as the operation id keeps them single even then.
func (e *evidence) judgeAttempts(p *placed) []string {
	var wrong []string
	begun, ended := make(map[int64]time.Time), make(map[int64]bool)
	for _, ev := range e.log.events(p.operation()) {
		switch ev.Kind {
		case "claimed":
			begun[ev.Attempt] = ev.At
		case "takeover":
			begun[ev.Attempt] = ev.At
			before, known := begun[ev.Attempt-1]
			held := ev.At.Sub(before)
			if known && !ended[ev.Attempt-1] && held < lease/2 && !e.struck(before, ev.At) {
				wrong = append(wrong, fmt.Sprintf("attempt %d took over %v after attempt %d had begun, whose lease is %v", ev.Attempt, held, ev.Attempt-1, lease))
			}
		case "done":
			if last := e.records[p.number].Attempt; ev.Attempt != last {
				wrong = append(wrong, fmt.Sprintf("attempt %d finished, although attempt %d had taken over", ev.Attempt, last))
			}
			fallthrough
		case "unknown", "released":
			if next, over := begun[ev.Attempt+1]; over && ev.At.Sub(next) > strikeGrain {
				wrong = append(wrong, fmt.Sprintf("attempt %d ended as %s %v after attempt %d had taken over", ev.Attempt, ev.Kind, ev.At.Sub(next), ev.Attempt+1))
			}
			ended[ev.Attempt] = true
		}
	}
	return wrong
}

// struck reports whether something was killed or frozen, or went on, between
// two moments: then lines may be missing or late.
func (e *evidence) struck(from, to time.Time) bool {
	return slices.ContainsFunc(e.hits, func(hit time.Time) bool {
		return hit.After(from.Add(-strikeGrain)) && hit.Before(to.Add(strikeGrain))
	})
}
