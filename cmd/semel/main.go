// Command semel is Semel's command line. "semel demo" starts the reference
// system; "semel --help" lists the rest.
//
// It exits with 0 when it did what was asked, 1 when it failed, 2 when it was
// asked for something it does not understand, and 128 and the signal's number
// when a signal kept it from doing it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are what a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run runs one command line. The first SIGINT or SIGTERM ends it in good
// order, the second one at once.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := untilInterrupted(ctx, os.Exit)
	defer stop()
	root := newRoot(streams{in: stdin, out: stdout, err: stderr})
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	var cut *interruption
	var exit *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %v\nSee \"%s --help\".\n", cmd.CommandPath(), err, cmd.CommandPath())
		return exitUsage
	case errors.As(err, &cut):
		fmt.Fprintf(stderr, "%s: %v\n", cmd.CommandPath(), err)
		return exitCode(cut.signal)
	}
	fmt.Fprintf(stderr, "%s: %v\n", cmd.CommandPath(), err)
	return exitFailed
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// printJSON prints v as one line of JSON.
func printJSON(w io.Writer, v any) {
	json.NewEncoder(w).Encode(v) //nolint:errcheck,errchkjson // a reader that has left cannot be told so.
}

// newRoot returns the command with all below it.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "semel",
		Short: "Semel makes repeated requests safe",
		Long: `Semel makes repeated requests safe: a client that got no reply sends the same
request again, with the same Idempotency-Key, and the work behind it takes effect
once.

Start with "semel demo": a shop, a payment service and a bank whose money you can
watch while replies are lost and servers are killed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       readVersion().String(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q", args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print which Semel this is")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newCheck(s), newDemo(s), newDemoProcess(s), newKeys(s), newMigrate(s), newVersion(s))
	return root
}
