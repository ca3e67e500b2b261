package check

import "fmt"

// outcome is what a case saw, before its level makes a finding of it.
type outcome struct {
	status   Status // Pass stands for held, Fail for broken
	evidence Evidence
	says     string
	how      string
}

// since returns the outcome with what it was told by.
func (o outcome) since(how string) outcome {
	o.how = how
	return o
}

func held(by Evidence, format string, args ...any) outcome {
	return outcome{status: Pass, evidence: by, says: fmt.Sprintf(format, args...)}
}

func broken(by Evidence, format string, args ...any) outcome {
	return outcome{status: Fail, evidence: by, says: fmt.Sprintf(format, args...)}
}

func told(format string, args ...any) outcome {
	return outcome{status: Told, says: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) outcome {
	return outcome{status: Skipped, says: fmt.Sprintf(format, args...)}
}

func setupFailed(format string, args ...any) outcome {
	return outcome{status: SetupFailed, says: fmt.Sprintf(format, args...)}
}

func inconclusive(format string, args ...any) outcome {
	return outcome{status: Inconclusive, says: fmt.Sprintf(format, args...)}
}

// Finding is what one case told.
type Finding struct {
	Case     Case
	Status   Status
	Evidence Evidence // empty where nothing was judged
	// Says is one sentence: what was seen, or why nothing could be.
	Says string
	// How is what executions were told by; empty where none were counted.
	How string
	// History holds the exchanges that show it, secrets masked.
	History []Exchange
}

// finding gives an outcome the weight of its case.
func (o outcome) finding(c Case, strict bool) Finding {
	f := Finding{Case: c, Status: o.status, Evidence: o.evidence, Says: o.says, How: o.how}
	if o.status == Fail && c.Level != Must && (c.Level != Should || !strict) {
		f.Status = Warn
	}
	if c.Level == Info && (o.status == Pass || o.status == Fail) {
		f.Status = Told
	}
	return f
}
