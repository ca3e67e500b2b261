package client

import (
	"flag"
	"fmt"
	"os"
	"testing"

	_ "modernc.org/sqlite"
)

// roleVariable makes the test program one of the processes of the storm.
const roleVariable = "SEMEL_CLIENT_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func() error{"service": service, "caller": caller}
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		flag.Set("rapid.checks", "2000") //nolint:errcheck // rapid has that flag; a second of virtual time.
		os.Exit(m.Run())
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
