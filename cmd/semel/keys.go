package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semel-dev/semel"
)

const keysHelp = `Look at the keys of a store, and say what became of an operation whose outcome
nobody knows. The service may go on running meanwhile.

A key is shown as the beginning of its digest, as in the service's log, because
whoever has a key can ask for the reply to it. --show-keys shows it.

  semel keys stuck --store sqlite:service.db
  semel keys show --operation 27d8fded-97f7-894a-ab9a-3256d4fff956
  semel keys settle --operation 27d8fded-97f7-894a-ab9a-3256d4fff956 \
    --as done --actor ann@example.com --reason 'the bank has the charge' --yes

States: running; lapsed, which is running with its lease run out; unknown;
done; released, which is known to have had no effect.`

func newKeys(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "See, explain, settle and erase keys",
		Long:  keysHelp,
		Args:  cobra.ArbitraryArgs,
		RunE:  group("keys"),
	}
	cmd.AddCommand(newKeysList(s), newKeysStuck(s), newKeysShow(s), newKeysSettle(s), newKeysErase(s))
	return cmd
}

// group is what a command does that only has others below it.
func group(name string) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("there is no command %q below %q", args[0], name)
		}
		return cmd.Help()
	}
}

// keysFlags are those of every command on keys.
type keysFlags struct {
	store    string
	asJSON   bool
	showKeys bool
}

func (f *keysFlags) add(flags *pflag.FlagSet) {
	addStoreFlag(flags, &f.store)
	flags.BoolVar(&f.asJSON, "json", false, "print JSON, a line for each record")
	flags.BoolVar(&f.showKeys, "show-keys", false, "show keys as they are, not the beginning of their digest")
}

// with calls do with the store.
func (f *keysFlags) with(ctx context.Context, do func(ctx context.Context, store semel.Store) error) error {
	store, closing, err := openStore(ctx, f.store)
	if err != nil {
		return err
	}
	defer closing()
	return do(ctx, store)
}

// errNoLister is that of a store that finds records by their key alone.
var errNoLister = errors.New("this store finds records by their key alone: give --scope and --key")

// listFlags are those of "list" and "stuck".
type listFlags struct {
	keysFlags

	states    []string
	scope     string
	olderThan time.Duration
	limit     int
	stuck     bool
	lapsed    bool // of what runs only that whose lease has run out
}

func (f *listFlags) add(flags *pflag.FlagSet, olderThan time.Duration) {
	f.keysFlags.add(flags)
	flags.StringVar(&f.scope, "scope", "", "only those of this `SCOPE`")
	flags.DurationVar(&f.olderThan, "older-than", olderThan, "only those first started at least this `DURATION` ago, such as 90s or 2h")
	flags.IntVar(&f.limit, "limit", 50, "at most `N`; 0 is all")
}

func newKeysList(s streams) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, the oldest first",
		Long: `List keys, the oldest first by their first start. What is expired is not listed.

With --json a line for each: operation, scope, keyDigest, key (with --show-keys),
state, lapsed, attempt, generation, open, ageSeconds, firstStarted, claimed,
leaseEnd, finished, expires, replyStarted, replyKept, status. Times are UTC, on
the store's clock. A scope or key that is no UTF-8 is in scopeBase64 or keyBase64.`,
		Example: `  semel keys list --store sqlite:service.db
  semel keys list --store postgres://app@db/shop --state unknown,running --older-than 10m
  semel keys list --scope payments:c_42 --limit 0 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.add(cmd.Flags(), 0)
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only those in these `STATES`: running (lapsed ones too), lapsed, unknown, done, released")
	return cmd
}

func newKeysStuck(s streams) *cobra.Command {
	f := listFlags{stuck: true}
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "List the keys that wait for somebody, the oldest first",
		Long: `List the keys whose outcome nobody knows: those that are unknown, and those whose
process has gone away while it worked (lapsed). Under Resume the next request with
the key settles it by itself; under Hold somebody has to: see "semel keys settle".

With --json as "semel keys list".`,
		Example: `  semel keys stuck --store sqlite:service.db
  semel keys stuck --store postgres://app@db/shop --older-than 10m --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), s) },
	}
	f.add(cmd.Flags(), semel.DefaultStuckAfter)
	return cmd
}

func (f *listFlags) run(ctx context.Context, s streams) error {
	p, err := f.params()
	if err != nil {
		return err
	}
	return f.with(ctx, func(ctx context.Context, store semel.Store) error {
		lister, ok := semel.As[semel.Lister](store)
		if !ok {
			return errNoLister
		}
		records, err := f.collect(ctx, lister, p)
		if err != nil {
			return err
		}
		if len(records) == 0 && !f.asJSON {
			return f.printNone(ctx, s, lister, p)
		}
		f.print(s, records)
		return nil
	})
}

// params are what the flags ask for.
func (f *listFlags) params() (semel.ListParams, error) {
	p := semel.ListParams{Scope: f.scope, OlderThan: f.olderThan}
	switch {
	case f.limit < 0:
		return p, usagef("--limit is %d; it must be positive, or 0 for all", f.limit)
	case f.olderThan < 0:
		return p, usagef("--older-than is %v; it must be positive", f.olderThan)
	}
	listable := []semel.State{semel.StateRunning, semel.StateUnknown, semel.StateDone, semel.StateReleased}
	f.lapsed = slices.Contains(f.states, stateLapsed) && !slices.Contains(f.states, semel.StateRunning.String())
	for _, name := range f.states {
		if name == stateLapsed {
			name = semel.StateRunning.String() // which is what a store has; wants tells them apart
		}
		i := slices.IndexFunc(listable, func(s semel.State) bool { return s.String() == name })
		if i < 0 {
			return p, usagef("--state has %q; there are running, lapsed, unknown, done, released", name)
		}
		if !slices.Contains(p.States, listable[i]) {
			p.States = append(p.States, listable[i])
		}
	}
	return p, nil
}

// wants reports whether a record of the states that were asked for is listed.
func (f *listFlags) wants(r *semel.Record) bool {
	return !f.lapsed || r.State != semel.StateRunning || lapsed(r)
}

// listPage is how many records are read at a time.
const listPage = 500

// collect reads page after page until there are enough.
func (f *listFlags) collect(ctx context.Context, lister semel.Lister, p semel.ListParams) ([]semel.Record, error) {
	next := lister.List
	if f.stuck {
		next = func(ctx context.Context, p semel.ListParams) ([]semel.Record, error) {
			return semel.ListStuck(ctx, lister, p)
		}
	}
	var all []semel.Record
	for {
		p.Limit = listPage
		if f.limit > 0 {
			p.Limit = min(listPage, f.limit-len(all))
		}
		page, err := next(ctx, p)
		more := err == nil && len(page) == p.Limit
		if more {
			p.After = page[len(page)-1].Position()
		}
		for i := range page {
			if f.wants(&page[i]) {
				all = append(all, page[i])
			}
		}
		if !more || f.limit > 0 && len(all) == f.limit {
			return all, err
		}
	}
}

// countUpTo is how many keys are counted, where it is only said how many there
// are.
const countUpTo = 1000

// printNone says that there is nothing to list, and what an age has left out.
func (f *listFlags) printNone(ctx context.Context, s streams, lister semel.Lister, p semel.ListParams) error {
	kind := "keys"
	switch {
	case f.stuck:
		kind = "stuck keys"
	case f.scope != "" || len(f.states) > 0:
		kind = "such keys"
	}
	if f.olderThan == 0 {
		fmt.Fprintln(s.out, "no", kind)
		return nil
	}
	every := listFlags{stuck: f.stuck, lapsed: f.lapsed, limit: countUpTo}
	p.OlderThan = 0
	younger, err := every.collect(ctx, lister, p)
	if err != nil {
		return err
	}
	switch n := len(younger); n {
	case 0:
		fmt.Fprintln(s.out, "no", kind)
	case countUpTo:
		fmt.Fprintf(s.out, "no %s older than %s; %d or more younger\n", kind, asTyped(f.olderThan), n)
	default:
		fmt.Fprintf(s.out, "no %s older than %s; %d younger\n", kind, asTyped(f.olderThan), n)
	}
	return nil
}

func (f *listFlags) print(s streams, records []semel.Record) {
	if f.asJSON {
		for i := range records {
			printVisibleJSON(s.out, viewOf(&records[i], f.showKeys))
		}
		return
	}
	printKeys(s.out, records, f.showKeys)
	if len(records) == f.limit {
		fmt.Fprintf(s.err, "There may be more: these are the first %d (--limit).\n", f.limit)
	}
}
