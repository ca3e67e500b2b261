package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/cmd/checkreport"
)

const checkHelp = `Test from outside whether an HTTP API makes repeated requests safe.

It sends one request in the ways that clients, networks and people repeat it, and
tells what became of each. The requests are real and have real effects: use a
system where nobody's money is at stake.

  semel check http://localhost:8080/payments -d @payment.json \
    -H 'Content-Type: application/json'

It tells executions apart by what replies name, such as an id that is new each
time. Where replies name nothing, let it count effects:

  semel check http://localhost:8080/payments -d @payment.json \
    --observe http://localhost:8080/ledger --observe-pointer /charges

Several operations are tested from a file (--config semel-check.yaml), or all
those of an OpenAPI document that declare the key's field:

  semel check http://localhost:8080 --openapi api.yaml --report sarif=check.sarif

Exit codes: 0 safe, or no verdict on the API because --run asked for a part of
it, of which nothing failed; 1 not safe; 2 the command line makes no sense; 3
nothing failed, and what was seen does not suffice to call it safe; 130 or 143 it
was stopped by a signal, and reports what it had found.

"semel check --list" names the cases, "semel check --explain ID" tells one. The
guide is docs/check.md.`

// checkFlags are the flags of semel check that are not about one operation.
type checkFlags struct {
	checkOptions

	config, openAPI   string
	reports           []string
	asJSON, verbose   bool
	dryRun, list, yes bool
	explain           string
}

func (f *checkFlags) add(flags *pflag.FlagSet) {
	f.checkOptions.add(flags)
	flags.StringVar(&f.config, "config", "", "YAML `FILE` with several operations (see docs/check.md)")
	flags.StringVar(&f.openAPI, "openapi", "", "OpenAPI 3 document `FILE`: test its operations that declare the key's field, at URL")
	flags.StringArrayVar(&f.reports, "report", nil, "write a report too: `FORMAT=FILE` with json (a list of all operations), junit, md or sarif, the last only with --openapi (repeatable)")
	flags.BoolVar(&f.list, "list", false, "name the cases, and do nothing")
	flags.StringVar(&f.explain, "explain", "", "tell what the case `ID` is about, and do nothing")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the requests and the cases that would run, and send nothing")
	flags.BoolVar(&f.asJSON, "json", false, "print the reports as JSON, a line for each operation")
	flags.BoolVar(&f.verbose, "verbose", false, "print what was sent and came back for each failure, not only the first three")
	flags.BoolVar(&f.yes, "yes-this-is-a-test-system", false, "allow a host that is not this machine")
}

func newCheck(s streams) *cobra.Command {
	f := checkFlags{checkOptions: defaultCheckOptions()}
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Test whether an HTTP API makes repeated requests safe",
		Long:  checkHelp,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list:
				return listCases(s, f.asJSON)
			case f.explain != "":
				return explainCase(s, f.explain)
			}
			return runCheck(cmd.Context(), s, args, f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// exitError ends the command with an exit code of its own, after everything was
// said.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// operation is one thing to test: where, how, and where it is declared.
type operation struct {
	target check.Target
	config check.Config
	at     checkreport.Location
}

// operations reads what is to be tested from the command line and its files.
func (f *checkFlags) operations(args []string) ([]operation, error) {
	switch {
	case f.config != "" && f.openAPI != "":
		return nil, usagef("--config and --openapi exclude each other")
	case f.config != "" && len(args) > 0:
		return nil, usagef("the addresses stand in the file of --config, so %q is too much", args)
	case f.config != "":
		return configured(f.config, f.checkOptions)
	case len(args) != 1:
		return nil, usagef("the address to test is missing, or there is more than one")
	case f.openAPI != "":
		return declared(f.openAPI, args[0], f.checkOptions)
	}
	f.URL = args[0]
	one, err := f.operation()
	return []operation{one}, err
}

func runCheck(ctx context.Context, s streams, args []string, f checkFlags) error {
	all, err := f.operations(args)
	if err != nil {
		return err
	}
	files, err := reportFiles(f.reports, f.openAPI != "")
	if err != nil {
		return err
	}
	for _, op := range all {
		if f.yes || f.dryRun {
			continue
		}
		if err := onlyHere(op.target); err != nil {
			return err
		}
	}
	if f.dryRun {
		return dryRun(s, all)
	}
	var done []checkreport.Checked
	for i, op := range all {
		if i > 0 && !f.asJSON {
			fmt.Fprintln(s.out)
		}
		report, err := checkOne(ctx, s, op, f)
		if err != nil {
			return err
		}
		done = append(done, checkreport.Checked{Report: report, At: op.at})
	}
	if len(done) > 1 && !f.asJSON {
		printVerdicts(s.out, done)
	}
	if err := writeReports(files, done); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return unlessInterrupted(ctx, err)
	}
	if code := exitCodeOf(done); code != exitDone {
		return &exitError{code}
	}
	return nil
}

// checkOne tests one operation and prints what it finds. After an interruption it
// finds nothing more, and says so.
func checkOne(ctx context.Context, s streams, op operation, f checkFlags) (*check.Report, error) {
	shown := newCheckProgress(s.err)
	op.config.ProgressFunc = shown.next
	report, err := check.Run(ctx, op.target, op.config)
	shown.end()
	switch {
	case report == nil:
		return nil, refusedCheck(err)
	case f.asJSON:
		printJSON(s.out, report)
	default:
		checkView{w: s.out, target: op.target, verbose: f.verbose}.report(report)
	}
	return report, nil
}

// refusedCheck is what the package check says of a target or config that makes no
// sense.
func refusedCheck(err error) error {
	return &usageError{errors.New(strings.TrimPrefix(err.Error(), "check: "))}
}

// exitCodeOf is the worst of all: not safe, then what could not be told.
func exitCodeOf(done []checkreport.Checked) int {
	worst := exitDone
	for _, c := range done {
		switch code := c.Report.ExitCode(); {
		case code == exitFailed:
			return exitFailed
		case code != exitDone:
			worst = code
		}
	}
	return worst
}

// onlyHere refuses to send anything to another machine: a check makes real
// payments of whatever the API takes.
func onlyHere(t check.Target) error {
	addresses := []string{t.URL}
	if t.Observe != nil {
		addresses = append(addresses, t.Observe.URL)
	}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			continue // the check itself says what is wrong with it
		}
		host := u.Hostname()
		if ip := net.ParseIP(host); host != "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return usagef("%s is not this machine, and a check makes real requests with real effects there: say --yes-this-is-a-test-system if nobody's money is at stake", host)
		}
	}
	return nil
}

func defaultCheckOptions() checkOptions {
	return checkOptions{
		Request: http.MethodPost, KeyHeader: check.DefaultKeyHeader, Seed: 1,
		Timeout: check.DefaultTimeout, RequestTimeout: check.DefaultRequestTimeout,
	}
}
