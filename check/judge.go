package check

import (
	"bytes"
	"context"
	"fmt"
)

// sighting is how many executions were seen behind some exchanges.
type sighting struct {
	executions int
	requests   int // how many were sent
	evidence   Evidence
	// unclear says why nothing can be said; it is empty otherwise.
	unclear string
	// how says what they were told by.
	how string
}

// watch counts the executions that happen while do sends the exchanges that it
// returns. With something to observe they are counted; else the replies are
// asked which execution they name.
func (s *session) watch(ctx context.Context, do func() []Exchange) sighting {
	r := s.run
	sent := len(s.sent)
	if r.target.Observe == nil {
		seen := r.sight(do())
		seen.requests = len(s.sent) - sent
		return seen
	}
	before, err := r.count(ctx)
	if err != nil {
		return sighting{unclear: err.Error()}
	}
	do()
	after, err := r.count(ctx)
	if err != nil {
		return sighting{unclear: err.Error()}
	}
	if (after-before)%r.step != 0 {
		return sighting{unclear: fmt.Sprintf("effects rose by %d, and one execution makes %d: somebody else is at work", after-before, r.step)}
	}
	return sighting{
		executions: (after - before) / r.step, requests: len(s.sent) - sent, evidence: Counted,
		how: fmt.Sprintf("what is counted was %d before and %d afterwards, and one execution adds %d", before, after, r.step),
	}
}

// sight counts executions by what replies name. Only replies of success name one.
func (r *run) sight(replies []Exchange) sighting {
	var kinds []Exchange
	for _, x := range replies {
		if !x.succeeded() {
			continue
		}
		known, err := r.isOneOf(kinds, x)
		if err != "" {
			return sighting{unclear: err}
		}
		if !known {
			kinds = append(kinds, x)
		}
	}
	if len(kinds) == 0 {
		return sighting{unclear: "no request was answered with success"}
	}
	evidence := Identity
	if len(r.marks.names) == 0 || !r.marks.in(kinds[0]) {
		evidence = Bytes
	}
	return sighting{executions: len(kinds), requests: len(replies), evidence: evidence, how: r.marks.tellApart(kinds)}
}

// isOneOf reports whether a reply comes from an execution that is known by
// another reply, or why that cannot be told.
func (r *run) isOneOf(kinds []Exchange, x Exchange) (bool, string) {
	for _, known := range kinds {
		switch r.marks.compare(known, x) {
		case sameExecution:
			return true, ""
		case otherExecution:
		case unclear:
			if bytes.Equal(known.ReplyBody, x.ReplyBody) {
				return true, ""
			}
			return false, "two replies are neither the same nor surely of two executions: name what may differ with Ignore, or let effects be counted"
		}
	}
	return false, ""
}

// once is the finding of most cases: these exchanges are one execution.
func (g sighting) once(says string) outcome {
	switch {
	case g.unclear != "":
		return inconclusive("%s", g.unclear)
	case g.executions == 1 && g.evidence == Bytes:
		return held(Bytes, "the replies are the same, which does not say how often it was executed")
	case g.executions == 1:
		return held(g.evidence, "%s", says)
	case g.executions == 0:
		return inconclusive("nothing was executed at all")
	}
	return broken(g.evidence, "%s of %d requests", executions(g.executions), g.requests).since(g.how)
}

// onceOf is once for requests that were sent at the same time. Where no two of
// them came as far as their key, they were not at work together.
func (g sighting) onceOf(raced []Exchange, says string) outcome {
	through := 0
	for _, x := range raced {
		if !x.turnedAway() {
			through++
		}
	}
	if through < 2 && g.executions <= 1 {
		return inconclusive("no two of the requests at once came as far as their key: %s", tally(raced))
	}
	o := g.once(says)
	if o.status == Fail {
		o.says += fmt.Sprintf(" (%d at once, %d afterwards)", len(raced), g.requests-len(raced))
	}
	return o
}

func executions(n int) string {
	if n == 1 {
		return "1 execution"
	}
	return fmt.Sprintf("%d executions", n)
}
