package check

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what a run told.
type Report struct {
	Target   string // method and address
	Findings []Finding
	// Run holds what Config.Run asked for; empty means all.
	Run []string
	// Cases is how many were to run.
	Cases int
	// Setup says what kept the run from testing anything; it is empty otherwise.
	Setup string
	// Interrupted says what ended the run before its last case; it is empty
	// otherwise.
	Interrupted string
	// CountedBy says where effects were counted; it is empty where they were not.
	CountedBy string
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
	// NoVerdict: nothing failed of what Config.Run asked for, and that leaves out
	// what a verdict on the API needs.
	NoVerdict Verdict = "no verdict"
)

// essential are the groups of cases without which nothing can be said.
var essential = []string{"replay", "mismatch", "concurrency"}

// Verdict judges the findings. Skipped and inconclusive cases do not count, but
// that each essential group needs one that held by identity or better. A group
// without a MUST case among those that Run names is not asked for: then nothing is
// said of the API as a whole.
func (r *Report) Verdict() Verdict {
	switch {
	case r.Counts()[Fail] > 0:
		return Unsafe
	case len(r.doubts()) > 0:
		return Untold
	case len(r.notAskedFor()) > 0:
		return NoVerdict
	}
	return Safe
}

// Because returns why the verdict is not [Safe], in short sentences.
func (r *Report) Because() []string {
	var why []string
	if r.Interrupted != "" && r.Setup == "" {
		why = append(why, fmt.Sprintf("the check is incomplete: %s, with %d of %d cases done", r.Interrupted, len(r.Findings), r.Cases))
	}
	for _, f := range r.Findings {
		if f.Status == Fail {
			why = append(why, f.Case.ID+": "+f.Says)
		}
	}
	why = append(why, r.doubts()...)
	if left := r.notAskedFor(); len(why) == 0 && len(left) > 0 {
		why = append(why, fmt.Sprintf("of what was asked for (%s) nothing failed; without the MUST cases of %s nothing is said of the API as a whole", strings.Join(r.Run, ", "), strings.Join(left, ", ")))
	}
	return why
}

// doubts are the reasons for which what did not fail does not suffice.
func (r *Report) doubts() []string {
	if r.Setup != "" {
		return []string{r.Setup}
	}
	var why []string
	told, nothing := make(map[string]bool), true
	for _, f := range r.Findings {
		isMust := f.Case.Level == Must
		nothing = nothing && !slices.Contains([]Status{Pass, Fail, Warn, Told}, f.Status)
		switch {
		case f.Status == Pass && isMust && !f.Evidence.AtLeast(Identity):
			why = append(why, f.Case.ID+" held by the bytes of the replies alone, and they say nothing of executions")
		case isMust && (f.Status == Pass || f.Status == Fail):
			told[f.Case.Group()] = true
		}
	}
	for _, group := range essential {
		if !told[group] && r.askedFor(group) {
			why = append(why, "no MUST case of "+group+" could be told by identity or better")
		}
	}
	if len(why) == 0 && nothing {
		why = append(why, "none of the cases that were asked for could be told")
	}
	return why
}

// notAskedFor are the essential groups that Run leaves out.
func (r *Report) notAskedFor() []string {
	return slices.DeleteFunc(slices.Clone(essential), r.askedFor)
}

// askedFor reports whether a MUST case of a group was to be run.
func (r *Report) askedFor(group string) bool {
	return len(r.Run) == 0 || slices.ContainsFunc(Cases(), func(c Case) bool {
		return c.Level == Must && c.Group() == group && slices.ContainsFunc(r.Run, func(pattern string) bool { return covers(pattern, c.ID) })
	})
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

// ExitCode is 0 for safe, and for no verdict where nothing failed of what was asked
// for; 1 for not safe, 3 for what could not be told.
func (r *Report) ExitCode() int {
	switch r.Verdict() {
	case Safe, NoVerdict:
		return 0
	case Unsafe:
		return 1
	default:
		return 3
	}
}

// Legend says what the words of a report mean, a sentence a line.
func Legend() []string {
	return []string{
		"MUST: the draft asks for it so, or money moves twice, or a caller is given the reply to somebody else or to another request; SHOULD: the draft; PRACTICE: what payment APIs do; INFO: both ways are sound.",
		"counted: by what the service says of its effects; identity: by what is new in each reply; bytes: replies were compared.",
	}
}

// ToldBy says by what executions were told apart.
func (r *Report) ToldBy() string {
	switch {
	case r.Setup != "":
		return "None could be run."
	case r.CountedBy != "":
		return "Executions were counted by " + r.CountedBy + "."
	case len(r.Marks) > 0:
		return "Executions were told apart by " + strings.Join(r.Marks, ", ") + "."
	}
	return "Replies say nothing of the execution that they come from: let effects be counted with --observe."
}

// Sum is how many findings there are of each status, in words.
func (r *Report) Sum() string {
	counts := r.Counts()
	var parts []string
	for _, status := range []Status{Pass, Fail, Warn, Told, Inconclusive, SetupFailed, Skipped} {
		parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
	}
	return strings.Join(parts, ", ")
}
