package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/cmd/examples/payments/demo"
)

// demoProcessName is the hidden command with which the demo starts this
// program again for each of its processes.
const demoProcessName = "demo-process"

func newDemoProcess(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:    demoProcessName,
		Short:  "A process of the demo, started by the demo",
		Hidden: true,
		Args:   noArgs,
	}
	var cfg demo.ChildConfig
	flags := cmd.PersistentFlags()
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` to listen on")
	flags.StringVar(&cfg.File, "file", "", "`FILE` of the database")
	cmd.MarkPersistentFlagRequired("file") //nolint:errcheck // the flag exists: see the line above.

	bank := &cobra.Command{
		Use:   "bank",
		Short: "The bank",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.RunBank(cmd.Context(), cfg, s.in, s.out, s.err)
		},
	}
	bank.Flags().BoolVar(&cfg.Forgets, "forgets", false, "do not look at keys")

	service := &cobra.Command{
		Use:   "service",
		Short: "The payment service",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := findDemoStore(os.Getenv(demoStoreVariable))
			if err != nil {
				return err
			}
			return explained(demo.RunService(cmd.Context(), cfg, store, s.in, s.out, s.err))
		},
	}
	service.Flags().StringVar(&cfg.Demo, "demo", "", "`NAME` of the demo in its store")
	service.Flags().StringVar(&cfg.Bank, "bank", "", "`HOST:PORT` of the bank")
	service.Flags().BoolVar(&cfg.LogKeys, "log-keys", false, "log keys as they are")
	cmd.AddCommand(bank, service)
	return cmd
}
