package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/cmd/examples/payments/demo"
	"github.com/semel-dev/semel/cmd/examples/payments/payer"
	"github.com/semel-dev/semel/cmd/examples/payments/supervise"
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
	for _, server := range []*cobra.Command{bank, service} {
		flags := server.Flags()
		flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "`HOST:PORT` to listen on")
		flags.StringVar(&cfg.File, "file", "", "`FILE` of the database")
		server.MarkFlagRequired("file") //nolint:errcheck // the flag exists: see the line above.
	}
	cmd.AddCommand(bank, service, newDemoPayer(s))
	return cmd
}

// demoPayerName is the hidden command below demoProcessName that is a customer's
// program.
const demoPayerName = "payer"

func newDemoPayer(s streams) *cobra.Command {
	var cfg payer.Config
	cmd := &cobra.Command{
		Use:   demoPayerName,
		Short: "A customer's program",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return payer.Run(supervise.Until(cmd.Context(), s.in), cfg, s.out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.URL, "url", "", "`URL` to send the order to")
	flags.StringVar(&cfg.Folder, "folder", "", "`DIR` where intents are kept")
	flags.StringVar(&cfg.Order, "order", "", "`NAME` of the order")
	flags.StringVar(&cfg.Key, "key", "", "`KEY` of a new intent")
	flags.StringVar(&cfg.Body, "body", "", "the order, as `JSON`")
	flags.BoolVar(&cfg.Dies, "dies", false, "be killed when an answer arrives")
	return cmd
}
