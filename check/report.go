package check

import (
	"fmt"
	"time"
)

// Report is what a run told.
type Report struct {
	Target   string // method and address
	Findings []Finding
	// Cases is how many were to run.
	Cases int
	// Setup says what kept the run from testing anything; it is empty otherwise.
	Setup string
	// Interrupted says what ended the run before its last case; it is empty
	// otherwise.
	Interrupted string
	// Marks are the leaves of a reply that tell executions apart.
	Marks []string
	Seed  uint64
	Took  time.Duration
}

// Verdict is what may be said of the API.
type Verdict string

// The verdicts.
const (
	// Safe: each MUST case that could run held, by identity or better, and replay,
	// mismatch and concurrency were among them.
	Safe Verdict = "safe"
	// Unsafe: a case failed.
	Unsafe Verdict = "not safe"
	// Untold: nothing failed, and replay, mismatch or concurrency could not be told,
	// or a MUST case held by the bytes of the replies alone.
	Untold Verdict = "could not be told"
)

// essential are the groups of cases without which nothing can be said.
var essential = []string{"replay", "mismatch", "concurrency"}

// Verdict judges the findings. Skipped and inconclusive cases do not count, but
// that each essential group needs one that held by identity or better.
func (r *Report) Verdict() Verdict {
	if len(r.Because()) == 0 {
		return Safe
	}
	if r.Counts()[Fail] > 0 {
		return Unsafe
	}
	return Untold
}

// Because returns why the verdict is not [Safe], in short sentences.
func (r *Report) Because() []string {
	if r.Setup != "" {
		return []string{r.Setup}
	}
	var why []string
	if r.Interrupted != "" {
		why = append(why, fmt.Sprintf("the check is incomplete: %s, with %d of %d cases done", r.Interrupted, len(r.Findings), r.Cases))
	}
	told := make(map[string]bool)
	for _, f := range r.Findings {
		switch {
		case f.Status == Fail:
			why = append(why, f.Case.ID+": "+f.Says)
		case f.Status != Pass || f.Case.Level != Must:
		case !f.Evidence.AtLeast(Identity):
			why = append(why, f.Case.ID+" held by the bytes of the replies alone, and they say nothing of executions")
		default:
			told[f.Case.Group()] = true
		}
	}
	for _, group := range essential {
		if !told[group] {
			why = append(why, "no MUST case of "+group+" could be told by identity or better")
		}
	}
	return why
}

// Counts tells how many findings there are of each status.
func (r *Report) Counts() map[Status]int {
	counts := make(map[Status]int)
	for _, f := range r.Findings {
		counts[f.Status]++
	}
	return counts
}

// NotLookedAt returns the ids of the MUST cases that were skipped or came out
// inconclusive: what the verdict says nothing of.
func (r *Report) NotLookedAt() []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Case.Level == Must && f.Status != Pass && f.Status != Fail {
			ids = append(ids, f.Case.ID)
		}
	}
	return ids
}

// ExitCode is 0 for safe, 1 for not safe, 3 for what could not be told.
func (r *Report) ExitCode() int {
	switch r.Verdict() {
	case Safe:
		return 0
	case Unsafe:
		return 1
	default:
		return 3
	}
}
