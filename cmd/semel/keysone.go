package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/semel-dev/semel"
)

// oneFlags are those of the commands on one record.
type oneFlags struct {
	keysFlags

	operation string
	scope     string
	key       string
}

func (f *oneFlags) add(flags *pflag.FlagSet) {
	f.keysFlags.add(flags)
	flags.StringVar(&f.operation, "operation", "", "the operation's `ID`, as in logs and at the bank")
	flags.StringVar(&f.scope, "scope", "", "the `SCOPE` of the key, with --key")
	flags.StringVar(&f.key, "key", "", "the `KEY` as the client sent it, with --scope")
}

// check refuses flags that name no record, or two.
func (f *oneFlags) check() error {
	byKey := f.scope != "" || f.key != ""
	switch {
	case f.operation == "" && !byKey:
		return usagef("which one? Give --operation, or --scope and --key")
	case f.operation != "" && byKey:
		return usagef("give either --operation, or --scope and --key")
	case byKey && (f.scope == "" || f.key == ""):
		return usagef("--scope and --key go together")
	case byKey:
		return nil
	}
	var id semel.OperationID
	if err := id.UnmarshalText([]byte(f.operation)); err != nil {
		return usagef("--operation is %s; it must be an id such as 27d8fded-97f7-894a-ab9a-3256d4fff956", visible(f.operation))
	}
	return nil
}

// find reads the record.
func (f *oneFlags) find(ctx context.Context, store semel.Store) (rec semel.Record, err error) {
	if f.operation == "" {
		rec, err = store.Get(ctx, f.scope, f.key)
		if err == nil && rec.State == semel.StateAbsent {
			err = fmt.Errorf("there is no record of this key in the scope %s", visible(f.scope))
		}
		return rec, err
	}
	var id semel.OperationID
	if err := id.UnmarshalText([]byte(f.operation)); err != nil {
		return rec, err
	}
	lister, ok := semel.As[semel.Lister](store)
	if !ok {
		return rec, errNoLister
	}
	rec, err = lister.ByOperation(ctx, id)
	if err == nil && rec.State == semel.StateAbsent {
		err = fmt.Errorf("there is no record of the operation %v", id)
	}
	return rec, err
}

func newKeysShow(s streams) *cobra.Command {
	var f oneFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show one key, and who has settled or erased what",
		Long: `Show one key with its times, on the store's clock, and the lines that settlements
have left in the audit log. The saved reply is not shown, only its status.

With --json as one line of "semel keys list" with audit, an array of at, attempt,
what, actor, reason, override.`,
		Example: `  semel keys show --store sqlite:service.db --operation 27d8fded-97f7-894a-ab9a-3256d4fff956
  semel keys show --scope payments:c_42 --key order-7 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.with(cmd.Context(), func(ctx context.Context, store semel.Store) error { return f.show(ctx, s, store) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *oneFlags) show(ctx context.Context, s streams, store semel.Store) error {
	rec, err := f.find(ctx, store)
	if err != nil {
		return err
	}
	var audits []semel.AuditEntry
	if auditor, ok := semel.As[semel.Auditor](store); ok {
		if audits, err = auditor.Audits(ctx, rec.Scope, rec.Key); err != nil {
			return err
		}
	}
	if f.asJSON {
		printVisibleJSON(s.out, fullView{viewOf(&rec, f.showKeys), auditsOf(audits)})
		return nil
	}
	printRecord(s.out, &rec, audits, f.showKeys)
	return nil
}

// changeFlags are those of the commands that change a record.
type changeFlags struct {
	oneFlags

	actor  string
	reason string
	yes    bool
}

func (f *changeFlags) add(flags *pflag.FlagSet) {
	f.oneFlags.add(flags)
	flags.StringVar(&f.actor, "actor", "", "`NAME` of who does it, for the audit log")
	flags.StringVar(&f.reason, "reason", "", "`TEXT` that says how it is known, for the audit log")
	flags.BoolVar(&f.yes, "yes", false, "do it: without this flag nothing is changed")
}

func (f *changeFlags) check() error {
	switch {
	case f.actor == "":
		return usagef("--actor is required: who does it")
	case f.reason == "":
		return usagef("--reason is required: how it is known")
	}
	return f.oneFlags.check()
}

// changed is what a command prints as JSON that changes a record.
type changed struct {
	Before keyView `json:"before"`
	After  keyView `json:"after"`
}

// printChange shows what the record was and what it is.
func (f *changeFlags) printChange(s streams, before, after *semel.Record) {
	if f.asJSON {
		printVisibleJSON(s.out, changed{viewOf(before, f.showKeys), viewOf(after, f.showKeys)})
		return
	}
	fmt.Fprintf(s.out, "was  %s\nis   %s\n", summary(before), summary(after))
}

// summary is a record in a line.
func summary(r *semel.Record) string {
	text := fmt.Sprintf("%s, attempt %d, operation %s", stateOf(r), r.Attempt, r.OperationID)
	if r.State == semel.StateDone {
		text += ", reply " + replyOf(r)
	}
	return text
}

// preview shows the record to somebody who has not said --yes.
func (f *changeFlags) preview(s streams, rec *semel.Record, would string) error {
	if f.asJSON {
		printVisibleJSON(s.out, viewOf(rec, f.showKeys))
	} else {
		printRecord(s.out, rec, nil, f.showKeys)
	}
	return usagef("nothing was changed; with --yes it would %s, which cannot be undone", would)
}

func newKeysErase(s streams) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Erase the saved reply of a key",
		Long: `Erase the headers and the body that were saved for a key, as for a person who asks
for it. The key stays used: a repeat runs nothing, and is told that the reply was
not kept. What is running or unknown is refused: settle it first.

The database's own log, its free pages and its backups keep what they have. Without
--yes the record is shown and nothing changes. With --json: before and after, each
as in "semel keys list".`,
		Example: `  semel keys erase --store sqlite:service.db --scope payments:c_42 --key order-7 \
    --actor ann@example.com --reason 'request 17 of the customer' --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.with(cmd.Context(), func(ctx context.Context, store semel.Store) error { return f.erase(ctx, s, store) })
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *changeFlags) erase(ctx context.Context, s streams, store semel.Store) error {
	rec, err := f.find(ctx, store)
	if err != nil {
		return err
	}
	if !f.yes {
		return f.preview(s, &rec, "erase the reply")
	}
	guard, err := newKeysGuard(store, semel.Config{})
	if err != nil {
		return err
	}
	res, err := guard.Erase(ctx, semel.EraseParams{Scope: rec.Scope, Key: rec.Key, Actor: f.actor, Reason: f.reason})
	switch {
	case err != nil:
		return err
	case res.Outcome == semel.EraseNothing:
		return fmt.Errorf("the record is %s and has no reply to erase", stateOf(&res.Record))
	}
	f.printChange(s, &rec, &res.Record)
	return nil
}

// newKeysGuard returns a guard that runs nothing. Its recovery is that of
// nobody: a settlement does not look at it.
func newKeysGuard(store semel.Store, cfg semel.Config) (*semel.Guard, error) {
	return semel.New(store, semel.Resume(semel.Forever), cfg)
}
