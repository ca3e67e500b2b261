package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/cmd/checkreport"
)

// checkView prints what a check found, what matters most first.
type checkView struct {
	w       io.Writer
	target  check.Target
	verbose bool
}

// wholeHistories is how many failures are printed with all that shows them.
const wholeHistories = 3

// report prints a report. Its last line, or its last paragraph where nothing
// failed and it is not called safe, is the verdict.
func (v checkView) report(r *check.Report) {
	fmt.Fprintf(v.w, "%s\n%d cases, seed %d. %s\n", r.Target, r.Cases, r.Seed, r.ToldBy())
	if len(r.Findings) > 0 {
		fmt.Fprintf(v.w, "%s\n\n", strings.Join(check.Legend(), "\n"))
		v.row("result", "level", "evidence", "case", "what was seen")
	}
	var failed []check.Finding
	for _, status := range byWeight {
		for _, f := range r.Findings {
			if f.Status == status {
				v.finding(f)
			}
			if f.Status == status && status == check.Fail {
				failed = append(failed, f)
			}
		}
	}
	v.failures(failed)
	v.summary(r)
}

// byWeight are the statuses in the order in which findings are printed.
var byWeight = []check.Status{check.Fail, check.Warn, check.SetupFailed, check.Inconclusive, check.Skipped, check.Told, check.Pass}

func (v checkView) finding(f check.Finding) {
	v.row(string(f.Status), string(f.Case.Level), string(f.Evidence), f.Case.ID, f.Says)
}

func (v checkView) row(result, level, evidence, id, says string) {
	fmt.Fprintf(v.w, "%-12s %-8s %-8s %-28s %s\n", result, level, evidence, id, says)
}

func (v checkView) failures(failed []check.Finding) {
	for i, f := range failed {
		if i < wholeHistories || v.verbose {
			v.failure(f)
		}
	}
	if left := len(failed) - wholeHistories; left > 0 && !v.verbose {
		fmt.Fprintf(v.w, "\n%d failures more are not printed at length: --verbose does so, or --run with the id of one.\n", left)
	}
}

// failure prints one with all that shows it.
func (v checkView) failure(f check.Finding) {
	fmt.Fprintf(v.w, "\n%s: %s\n  %s\n", f.Case.ID, f.Says, f.Case.Title)
	if f.How != "" {
		fmt.Fprintf(v.w, "  How that is known: %s\n", f.How)
	}
	fmt.Fprintf(v.w, "  Expected: %s\n  Why it matters: %s\n  To mend it: %s\n  Asked by: %s\n\n", f.Case.Expects, f.Case.Costs, f.Case.Fix, f.Case.Clause)
	f.WriteHistory(v.w) //nolint:errcheck // a reader that has left cannot be told so.
	fmt.Fprintln(v.w, "\n  To see it again:")
	f.WriteScript(indented{v.w}, v.target.KeyHeader) //nolint:errcheck // as above.
}

func (v checkView) summary(r *check.Report) {
	if len(r.Findings) > 0 {
		fmt.Fprintf(v.w, "\n%s, in %s\n", r.Sum(), r.Took.Round(time.Millisecond))
	}
	if missing := r.NotLookedAt(); len(missing) > 0 {
		fmt.Fprintf(v.w, "MUST cases that could not be looked at: %s\n", strings.Join(missing, ", "))
	}
	why := r.Because()
	if r.Verdict() == check.Unsafe {
		if r.Interrupted != "" {
			fmt.Fprintln(v.w, why[0])
		}
		why = nil
	}
	fmt.Fprintf(v.w, "%s: %s\n", r.Target, r.Verdict())
	for _, line := range why {
		fmt.Fprintln(v.w, "  "+line)
	}
}

// printVerdicts prints a line for each of several operations.
func printVerdicts(w io.Writer, all []checkreport.Checked) {
	fmt.Fprintf(w, "\n%d operations:\n", len(all))
	for _, c := range all {
		fmt.Fprintf(w, "  %s: %s\n", c.Report.Target, c.Report.Verdict())
	}
}

// indented moves what is written to the right.
type indented struct{ io.Writer }

func (w indented) Write(p []byte) (int, error) {
	text := strings.TrimSuffix(string(p), "\n")
	_, err := io.WriteString(w.Writer, "    "+strings.ReplaceAll(text, "\n", "\n    ")+"\n")
	return len(p), err
}

func listCases(s streams, asJSON bool) error {
	type row struct {
		ID    string      `json:"id"`
		Level check.Level `json:"level"`
		Title string      `json:"title"`
	}
	for _, c := range check.Cases() {
		if asJSON {
			printJSON(s.out, row{c.ID, c.Level, c.Title})
			continue
		}
		fmt.Fprintf(s.out, "%-28s %-8s %s\n", c.ID, c.Level, c.Title)
	}
	return nil
}

func explainCase(s streams, id string) error {
	for _, c := range check.Cases() {
		if c.ID == id {
			fmt.Fprintf(s.out, "%s (%s): %s\n\nSent: %s\n\nExpected: %s\n\nAsked by: %s\n\nWhy it costs money: %s\n\nTo mend it: %s\n",
				c.ID, c.Level, c.Title, c.Sends, c.Expects, c.Clause, c.Costs, c.Fix)
			return nil
		}
	}
	return usagef("no case is called %q; semel check --list names them", id)
}

// dryRun prints what would be sent.
func dryRun(s streams, all []operation) error {
	for _, op := range all {
		cases, err := op.config.Selected()
		if err != nil {
			return refusedCheck(err)
		}
		fmt.Fprintf(s.out, "%s %s\n%s: a new key for each operation\n", op.target.Method, check.MaskedURL(op.target.URL), op.target.KeyHeader)
		check.Masked(op.target.Header).Write(s.out) //nolint:errcheck // a reader that has left cannot be told so.
		fmt.Fprintf(s.out, "\n%s\n\n", op.target.Body)
		for _, c := range cases {
			fmt.Fprintf(s.out, "%-28s %s\n", c.ID, c.Sends)
		}
	}
	return nil
}

// reportFile is a report to be written.
type reportFile struct {
	format checkreport.Format
	path   string
}

// reportFiles reads --report, and finds out whether the files can be written, before
// anything is sent.
func reportFiles(wanted []string, located bool) ([]reportFile, error) {
	var files []reportFile
	for _, text := range wanted {
		name, path, _ := strings.Cut(text, "=")
		format := checkreport.Formats[name]
		switch {
		case format == nil || path == "":
			return nil, usagef("--report must be FORMAT=FILE, with a format of %s, not %q",
				strings.Join(slices.Sorted(maps.Keys(checkreport.Formats)), ", "), text)
		case name == checkreport.SARIF && !located:
			return nil, usagef("--report sarif=… needs --openapi: each of its results points to a line of a file")
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // a report for others.
		if err != nil {
			return nil, usagef("--report: %w", err)
		}
		if err := file.Close(); err != nil {
			return nil, usagef("--report: %w", err)
		}
		files = append(files, reportFile{format, path})
	}
	return files, nil
}

func writeReports(files []reportFile, all []checkreport.Checked) error {
	for _, f := range files {
		var text bytes.Buffer
		if err := f.format(&text, all); err != nil {
			return usagef("--report %s: %w", f.path, err)
		}
		if err := os.WriteFile(f.path, text.Bytes(), 0o644); err != nil { //nolint:gosec // a report for others.
			return usagef("--report: %w", err)
		}
	}
	return nil
}
