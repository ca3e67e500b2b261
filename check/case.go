package check

import (
	"context"
	"slices"
	"strings"
)

// Case is one thing that is tested.
type Case struct {
	// ID is group/name, and stays the same from release to release.
	ID    string
	Level Level
	Title string
	// Sends and Expects tell what is done, Clause where it is asked (N-numbers are
	// the draft's requirements by section), Costs why it costs money when it is
	// broken, Fix what to do then.
	Sends, Expects, Clause, Costs, Fix string

	run func(ctx context.Context, s *session) outcome
}

// Group is the part of the id before the first slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// Cases returns all cases, in the order in which they run.
func Cases() []Case {
	return slices.Concat(replayCases, mismatchCases, concurrencyCases, failureCases, lostCases, keyCases,
		scopeCases, headerCases, jsonCases, bodyCases, methodCases, retentionCases, problemCases)
}

// covers reports whether an id is pattern, or lies below it.
func covers(pattern, id string) bool {
	pattern = strings.TrimSuffix(pattern, "/")
	return id == pattern || strings.HasPrefix(id, pattern+"/")
}
