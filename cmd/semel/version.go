package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what "semel version" says.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is v as a line for people. A program built outside a checkout has no
// revision.
func (v versionInfo) String() string {
	line := "semel " + v.Version
	if v.Revision != "" {
		line += " " + v.Revision
	}
	return fmt.Sprintf("%s, %s %s", line, v.Go, v.Platform)
}

func newVersion(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print which Semel this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if asJSON {
				printJSON(s.out, v)
			} else {
				fmt.Fprintln(s.out, v)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readVersion reads what the Go toolchain has stamped into the program.
func readVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

// noArgs refuses arguments, as a mistake of usage.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("does not take arguments, and got %q", args)
	}
	return nil
}
