// Package checkreport writes what semel check found in the formats of others:
// JSON, JUnit XML, Markdown and SARIF. It judges nothing.
package checkreport

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/semel-dev/semel/check"
)

// Location is where an operation is declared; the line counts from 1.
type Location struct {
	File string
	Line int
}

// Checked is a report and where its operation is declared.
type Checked struct {
	Report *check.Report
	At     Location
}

// Format writes reports.
type Format func(w io.Writer, all []Checked) error

// Formats are the formats by their names on the command line.
var Formats = map[string]Format{"json": writeJSON, "junit": writeJUnit, "md": writeMarkdown, "sarif": writeSARIF}

// SARIF is the format that needs to know where operations are declared: code
// scanning refuses a file with a result that has no place.
const SARIF = "sarif"

const casesURL = "https://github.com/semel-dev/semel/blob/main/docs/check-cases.md#"

// pageOf is where a case is explained.
func pageOf(c check.Case) string { return casesURL + strings.ReplaceAll(c.ID, "/", "") }

func writeJSON(w io.Writer, all []Checked) error {
	reports := make([]*check.Report, len(all))
	for i, c := range all {
		reports[i] = c.Report
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(reports)
}

func writeJUnit(w io.Writer, all []Checked) error {
	var suites junit.Testsuites
	for _, c := range all {
		suites.AddSuite(suite(c.Report))
	}
	return suites.WriteXML(w)
}

// suite is one operation. A verdict that could not be told is an error of its
// own, and so is a run that ended early, so that an empty report is not green.
func suite(r *check.Report) junit.Testsuite {
	s := junit.Testsuite{Name: r.Target, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
	verdict := junit.Testcase{Classname: "semel check", Name: "verdict"}
	switch {
	case r.Interrupted != "":
		verdict.Error = &junit.Result{Message: "incomplete: " + r.Interrupted, Data: strings.Join(r.Because(), "\n")}
	case r.Verdict() == check.Untold:
		verdict.Error = &junit.Result{Message: string(check.Untold), Data: strings.Join(r.Because(), "\n")}
	}
	s.AddTestcase(verdict)
	for _, f := range r.Findings {
		tc := junit.Testcase{Classname: "semel check", Name: f.Case.ID}
		switch f.Status {
		case check.Fail:
			tc.Failure = &junit.Result{Message: f.Says, Type: string(f.Case.Level), Data: history(f)}
		case check.SetupFailed, check.Skipped, check.Inconclusive:
			tc.Skipped = &junit.Result{Message: string(f.Status) + ": " + f.Says}
		case check.Warn:
			tc.SystemOut = &junit.Output{Data: "warning: " + f.Says}
		case check.Pass, check.Told:
			tc.SystemOut = &junit.Output{Data: f.Says}
		}
		s.AddTestcase(tc)
	}
	return s
}

func history(f check.Finding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nExpected: %s\n%s\n\n", f.Case.Title, f.Case.Expects, pageOf(f.Case))
	f.WriteHistory(&b) //nolint:errcheck // a builder takes all.
	return b.String()
}

func writeMarkdown(w io.Writer, all []Checked) error {
	var b strings.Builder
	for _, c := range all {
		markdown(&b, c.Report)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdown(b *strings.Builder, r *check.Report) {
	fmt.Fprintf(b, "## `%s`: %s\n\n", r.Target, r.Verdict())
	for _, why := range r.Because() {
		fmt.Fprintf(b, "- %s\n", cell(why))
	}
	if missing := r.NotLookedAt(); len(missing) > 0 {
		fmt.Fprintf(b, "- MUST cases that could not be looked at: %s\n", strings.Join(missing, ", "))
	}
	fmt.Fprintf(b, "\n%d cases, seed %d: %s, in %s. %s\n\n", r.Cases, r.Seed, r.Sum(), r.Took.Round(time.Millisecond), cell(r.ToldBy()))
	for _, line := range check.Legend() {
		fmt.Fprintf(b, "- %s\n", line)
	}
	b.WriteString("\n| case | level | result | evidence | what was seen |\n|---|---|---|---|---|\n")
	for _, f := range r.Findings {
		fmt.Fprintf(b, "| [%s](%s) | %s | %s | %s | %s |\n", f.Case.ID, pageOf(f.Case), f.Case.Level, f.Status, f.Evidence, cell(f.Says))
	}
	b.WriteString("\n")
}

// cell keeps a text within one cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

func writeSARIF(w io.Writer, all []Checked) error {
	run := sarif.NewRunWithInformationURI("semel check", "https://github.com/semel-dev/semel")
	for _, c := range all {
		complete := c.Report.Setup == "" && c.Report.Interrupted == ""
		done := sarif.NewInvocation().WithExecutionSuccessful(complete)
		if !complete {
			done.WithExitCodeDescription(c.Report.Target + ": " + strings.Join(c.Report.Because(), "; "))
		}
		run.AddInvocation(done)
		for _, f := range c.Report.Findings {
			level := map[check.Status]string{check.Fail: "error", check.Warn: "warning"}[f.Status]
			if level == "" {
				continue
			}
			run.AddRule(f.Case.ID).WithDescription(f.Case.Title).WithHelpURI(pageOf(f.Case))
			place := sarif.NewPhysicalLocation().
				WithArtifactLocation(sarif.NewSimpleArtifactLocation(c.At.File)).
				WithRegion(sarif.NewRegion().WithStartLine(c.At.Line))
			run.AddResult(sarif.NewRuleResult(f.Case.ID).WithLevel(level).
				WithMessage(sarif.NewTextMessage(c.Report.Target + ": " + f.Says)).
				WithLocations([]*sarif.Location{sarif.NewLocationWithPhysicalLocation(place)}))
		}
	}
	report := sarif.NewReport()
	report.AddRun(run)
	return report.PrettyWrite(w)
}
