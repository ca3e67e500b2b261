package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const settleHelp = `Say what became of an operation whose outcome nobody knows. Ask first: the bank for
the operation id, the database for the row.

  --as done         it took effect. A repeat runs nothing, and is told that the
                    reply was not kept; or gets the reply that you give, with
                    --status, --reply-header and --reply.
  --as not-applied  it had no effect, and none is on its way. The key is free: the
                    next request with it runs, under the same operation id.
  --as start-over   the same, under a new operation id, for a bank that would
                    refuse the old one.

The last two are refused until the latest attempt can have no more effect: handler
deadline and settle delay after it was claimed. Give the service's own settings if
they are not the defaults. --override skips the wait, and the audit log says so.

Refused as well: what is running with a live lease, what is done or released, and
what another attempt has changed in the meantime. Without --yes the record is shown
and nothing changes. With --json: before and after, each as in "semel keys list".`

// settleFlags are those of "semel keys settle".
type settleFlags struct {
	changeFlags

	as              string
	reply           replyFlags
	override        bool
	service         string
	handlerDeadline time.Duration
	settleDelay     time.Duration
	retention       time.Duration
}

// settlements are the values of --as.
var settlements = map[string]semel.SettleAs{
	"done":        semel.SettleDone,
	"not-applied": semel.SettleNotApplied,
	"start-over":  semel.SettleStartOver,
}

func newKeysSettle(s streams) *cobra.Command {
	var f settleFlags
	cmd := &cobra.Command{
		Use:   "settle",
		Short: "Say what became of an operation whose outcome nobody knows",
		Long:  settleHelp,
		Example: `  semel keys settle --store sqlite:service.db --operation 27d8fded-97f7-894a-ab9a-3256d4fff956 \
    --as done --actor ann@example.com --reason 'the bank has the charge, ticket 4711' --yes
  semel keys settle --operation 27d8fded-97f7-894a-ab9a-3256d4fff956 \
    --as not-applied --actor ann@example.com --reason 'the bank has no such charge' --handler-deadline 30s --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.with(cmd.Context(), func(ctx context.Context, store semel.Store) error { return f.settle(ctx, s, store) })
		},
	}
	f.add(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.as, "as", "", "`WHAT` happened: done, not-applied or start-over")
	f.reply.add(flags)
	flags.BoolVar(&f.override, "override", false, "do not wait until no effect can be on its way")
	flags.StringVar(&f.service, "service", semel.DefaultService, "the service's `NAME` (Config.Service), for start-over")
	flags.DurationVar(&f.handlerDeadline, "handler-deadline", semel.DefaultHandlerDeadline, "the service's `DURATION`")
	flags.DurationVar(&f.settleDelay, "settle-delay", semel.DefaultSettleDelay, "the service's `DURATION`")
	flags.DurationVar(&f.retention, "retention", semel.DefaultRetention, "the service's `DURATION`, for which the record is kept from now on")
	return cmd
}

func (f *settleFlags) check() error {
	switch as, ok := settlements[f.as]; {
	case !ok:
		return usagef("--as is %q; it must be done, not-applied or start-over", f.as)
	case f.override && as == semel.SettleDone:
		return usagef("--override goes with not-applied and start-over: done waits for nothing")
	case f.reply.given() && as != semel.SettleDone:
		return usagef("a reply goes with --as done: what was not applied has none")
	}
	if err := f.reply.check(); err != nil {
		return err
	}
	return f.changeFlags.check()
}

func (f *settleFlags) settle(ctx context.Context, s streams, store semel.Store) error {
	as := settlements[f.as]
	guard, err := newKeysGuard(store, semel.Config{
		Service: f.service, HandlerDeadline: f.handlerDeadline, SettleDelay: f.settleDelay, Retention: f.retention,
	})
	if err != nil {
		return &usageError{err}
	}
	reply, err := f.reply.read()
	if err != nil {
		return err
	}
	before, err := f.find(ctx, store)
	if err != nil {
		return err
	}
	if as == semel.SettleStartOver {
		if err := f.checkService(&before); err != nil {
			return err
		}
	}
	if !f.yes {
		return f.preview(s, &before, "settle the operation as "+f.as)
	}
	after, err := guard.Settle(ctx, semel.SettleParams{
		Expect: before, As: as, Actor: f.actor, Reason: f.reason, Override: f.override, Reply: reply,
	})
	if err != nil {
		return err
	}
	f.printChange(s, &before, &after)
	return nil
}

// checkService makes sure that the new operation id is the one that the service
// would derive: the present one must be.
func (f *settleFlags) checkService(rec *semel.Record) error {
	if derived := semel.NewOperationID(f.service, rec.Scope, rec.Key, rec.Generation); derived != rec.OperationID {
		return fmt.Errorf("--service is %s, under which this key has the operation id %v and not %v; give the name that the service has (Config.Service)",
			visible(f.service), derived, rec.OperationID)
	}
	return nil
}
