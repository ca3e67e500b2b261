package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semel-dev/semel/check"
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

Exit codes: 0 safe; 1 not safe; 2 the command line makes no sense; 3 nothing
failed, and replay, mismatch or concurrency could not be told.

"semel check --list" names the cases, "semel check --explain ID" tells one. The
guide is docs/check.md.`

// checkFlags are the flags of semel check.
type checkFlags struct {
	method, keyHeader, pointer                    string
	headers                                       []string
	data, otherData, refusedData, failingData     string
	tenants, observe, observePointer, authCommand string
	observeHeaders, ignore, only, skip            []string
	bareKeys, strict, asJSON, dryRun, list, yes   bool
	explain                                       string
	seed                                          uint64
	rate                                          float64
	timeout                                       time.Duration
}

func (f *checkFlags) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.method, "request", "X", http.MethodPost, "method of the request")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "field of the request, 'Name: value' (repeatable)")
	flags.StringVarP(&f.data, "data", "d", "", "body of the request, or @FILE; {{unique}} in it is new for each operation")
	flags.StringVar(&f.pointer, "mismatch-pointer", "", "JSON pointer to the value that is changed for another request under a used key (default: the first number or string)")
	flags.StringVar(&f.otherData, "mismatch-data", "", "another good body instead, or @FILE")
	flags.StringVar(&f.refusedData, "refused-data", "", "body that the API refuses with a 4xx, or @FILE")
	flags.StringVar(&f.failingData, "failing-data", "", "body that the API fails on with a 5xx, or @FILE")
	flags.StringVar(&f.tenants, "tenant-header", "", "field that tells callers apart, with two of them: 'Name: one,two'")
	flags.StringVar(&f.observe, "observe", "", "address of JSON that counts the effects")
	flags.StringVar(&f.observePointer, "observe-pointer", "", "JSON pointer to the number, or the array, that counts them")
	flags.StringArrayVar(&f.observeHeaders, "observe-header", nil, "field of that request, 'Name: value' (repeatable)")
	flags.StringArrayVar(&f.ignore, "ignore", nil, "JSON pointer to what differs in each reply and says nothing of the execution (repeatable)")
	flags.StringVar(&f.authCommand, "auth-command", "", "command that prints fields 'Name: value', asked at the start and after a 401")
	flags.StringVar(&f.keyHeader, "key-header", "Idempotency-Key", "field that carries the key")
	flags.BoolVar(&f.bareKeys, "bare-keys", false, "send keys without the quotes of a structured field")
	flags.StringArrayVar(&f.only, "run", nil, "id of a case, or its beginning, to run (repeatable; default: all)")
	flags.StringArrayVar(&f.skip, "skip", nil, "id of a case, or its beginning, not to run, with a reason: ID=reason (repeatable)")
	flags.BoolVar(&f.strict, "strict", false, "let a broken SHOULD fail as a MUST does")
	flags.Uint64Var(&f.seed, "seed", 1, "chooses where replies are cut")
	flags.Float64Var(&f.rate, "rate-limit", 0, "requests in a second at most, but for those that are sent at once (0: no limit)")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one request may take")
	flags.BoolVar(&f.list, "list", false, "name the cases, and do nothing")
	flags.StringVar(&f.explain, "explain", "", "tell what a case is about, and do nothing")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the request and the cases that would run, and send nothing")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	flags.BoolVar(&f.yes, "yes-this-is-a-test-system", false, "allow a host that is not this machine")
}

func newCheck(s streams) *cobra.Command {
	var f checkFlags
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
			case len(args) != 1:
				return usagef("the address to test is missing, or there is more than one")
			}
			return runCheck(cmd.Context(), s, args[0], f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// exitError ends the command with an exit code of its own, after everything was
// said.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func runCheck(ctx context.Context, s streams, address string, f checkFlags) error {
	target, err := f.target(address)
	if err != nil {
		return err
	}
	cfg, err := f.config()
	if err != nil {
		return err
	}
	if f.dryRun {
		return dryRun(s, target, cfg)
	}
	if !f.yes {
		if err := onlyHere(target); err != nil {
			return err
		}
	}
	if !f.asJSON {
		cfg.ProgressFunc = func(finding check.Finding) { printFinding(s.out, finding) }
	}
	report, err := check.Run(ctx, target, cfg)
	if report == nil {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		printJSON(s.out, report)
	} else {
		printReport(s.out, report, target.KeyHeader)
	}
	if code := report.ExitCode(); code != exitDone {
		return &exitError{code}
	}
	return nil
}

// target reads the flags that say what is tested.
func (f *checkFlags) target(address string) (check.Target, error) {
	t := check.Target{
		Method: strings.ToUpper(f.method), URL: address, MismatchPointer: f.pointer,
		Ignore: f.ignore, KeyHeader: f.keyHeader, BareKeys: f.bareKeys,
	}
	var err error
	if t.Header, err = parseFields("--header", f.headers); err != nil {
		return t, err
	}
	for _, body := range []struct {
		flag, text string
		into       *[]byte
	}{
		{"--data", f.data, &t.Body},
		{"--mismatch-data", f.otherData, &t.OtherBody},
		{"--refused-data", f.refusedData, &t.RefusedBody},
		{"--failing-data", f.failingData, &t.FailingBody},
	} {
		if *body.into, err = readData(body.flag, body.text); err != nil {
			return t, err
		}
	}
	if f.tenants != "" {
		name, values, _ := strings.Cut(f.tenants, ":")
		one, two, found := strings.Cut(values, ",")
		if !found {
			return t, usagef("--tenant-header must be 'Name: one,two', not %q", f.tenants)
		}
		t.TenantHeader, t.Tenants = strings.TrimSpace(name), [2]string{strings.TrimSpace(one), strings.TrimSpace(two)}
	}
	if (f.observe == "") != (f.observePointer == "") {
		return t, usagef("--observe and --observe-pointer go together")
	}
	if f.observe != "" {
		header, err := parseFields("--observe-header", f.observeHeaders)
		if err != nil {
			return t, err
		}
		t.Observe = &check.Observe{URL: f.observe, Pointer: f.observePointer, Header: header}
	}
	if f.authCommand != "" {
		t.AuthorizeFunc = func(ctx context.Context) (http.Header, error) { return askCommand(ctx, f.authCommand) }
	}
	return t, nil
}

// config reads the flags that say how it is tested.
func (f *checkFlags) config() (check.Config, error) {
	cfg := check.Config{Run: f.only, Strict: f.strict, Seed: f.seed, RequestsPerSecond: f.rate, Timeout: f.timeout, Skip: make(map[string]string)}
	for _, text := range f.skip {
		id, why, found := strings.Cut(text, "=")
		if !found || why == "" {
			return cfg, usagef("--skip must be ID=reason, not %q: who reads the report wants to know why", text)
		}
		cfg.Skip[id] = why
	}
	return cfg, nil
}

func parseFields(flag string, lines []string) (http.Header, error) {
	h := make(http.Header)
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, usagef("%s must be 'Name: value', not %q", flag, line)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

func readData(flag, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return []byte(text), nil
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	return body, nil
}

// askCommand runs a command of the user's and reads the fields that it prints.
func askCommand(ctx context.Context, command string) (http.Header, error) {
	out, err := exec.CommandContext(ctx, "sh", "-c", command).Output() //nolint:gosec // the user's own command, as asked.
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("--auth-command: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("--auth-command: %w", err)
	}
	return parseFields("what --auth-command prints", strings.Split(strings.TrimSpace(string(out)), "\n"))
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
			return usagef("%w", err)
		}
		host := u.Hostname()
		if ip := net.ParseIP(host); host != "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return usagef("%s is not this machine, and a check makes real requests with real effects there: say --yes-this-is-a-test-system if nobody's money is at stake", host)
		}
	}
	return nil
}
