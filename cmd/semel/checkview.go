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

func printFinding(w io.Writer, f check.Finding) {
	fmt.Fprintf(w, "%-12s %-8s %-8s %-28s %s\n", f.Status, f.Case.Level, f.Evidence, f.Case.ID, f.Says)
}

// printReport prints what failed, with what shows it, and the verdict.
func printReport(w io.Writer, r *check.Report, keyHeader string) {
	for _, f := range r.Findings {
		if f.Status == check.Fail {
			printFailure(w, f, keyHeader)
		}
	}
	if len(r.Marks) > 0 {
		fmt.Fprintf(w, "\nExecutions were told apart by %s.\n", strings.Join(r.Marks, ", "))
	}
	counts := r.Counts()
	fmt.Fprintf(w, "\n%d passed, %d failed, %d warned, %d told, %d inconclusive, %d not set up, %d skipped, in %s\n",
		counts[check.Pass], counts[check.Fail], counts[check.Warn], counts[check.Told], counts[check.Inconclusive],
		counts[check.SetupFailed], counts[check.Skipped], r.Took.Round(time.Millisecond))
	if missing := r.NotLookedAt(); len(missing) > 0 {
		fmt.Fprintf(w, "MUST cases that could not be looked at: %s\n", strings.Join(missing, ", "))
	}
	fmt.Fprintf(w, "%s: %s\n", r.Target, r.Verdict())
	if r.Verdict() != check.Unsafe {
		for _, why := range r.Because() {
			fmt.Fprintln(w, "  "+why)
		}
	}
}

func printFailure(w io.Writer, f check.Finding, keyHeader string) {
	fmt.Fprintf(w, "\n%s: %s\n  %s\n  Expected: %s\n  Why it matters: %s\n  To mend it: %s\n  Asked by: %s\n\n",
		f.Case.ID, f.Says, f.Case.Title, f.Case.Expects, f.Case.Costs, f.Case.Fix, f.Case.Clause)
	f.WriteHistory(w) //nolint:errcheck // a reader that has left cannot be told so.
	fmt.Fprintln(w, "\n  To see it again:")
	f.WriteScript(indented{w}, keyHeader) //nolint:errcheck // as above.
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
			return &usageError{err}
		}
		fmt.Fprintf(s.out, "%s %s\n%s: a new key for each operation\n", op.target.Method, op.target.URL, op.target.KeyHeader)
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

// reportFiles reads --report, before anything is sent.
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
		files = append(files, reportFile{format, path})
	}
	return files, nil
}

func writeReports(files []reportFile, all []checkreport.Checked) error {
	for _, f := range files {
		var text bytes.Buffer
		if err := f.format(&text, all); err != nil {
			return fmt.Errorf("--report %s: %w", f.path, err)
		}
		if err := os.WriteFile(f.path, text.Bytes(), 0o644); err != nil { //nolint:gosec // a report for others.
			return fmt.Errorf("--report: %w", err)
		}
	}
	return nil
}
