package integration

import (
	"fmt"
	"os"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel/internal/integration/services"
)

// roleVariable makes the test program one of the processes that a test starts.
const roleVariable = "SEMEL_INTEGRATION_ROLE"

// roles are what a child process may be. Standard input and output are the
// test's; a role ends when its input does.
var roles = map[string]func() error{
	"sqlite-worker": sqliteWorker,
	"sqlite-open":   sqliteOpen,
	"sqlite-load":   sqliteLoad,
	"sqlite-joined": sqliteJoined,
	"sqlite-race":   sqliteRace,
	"http-shop":     httpShop,
	"http-window":   httpWindow,
	"pgx-atomic":    pgxAtomic,
	"pgx-worker":    pgxWorker,
	"sql-worker":    sqlWorker,
	"redis-worker":  redisWorker,
}

func TestMain(m *testing.M) {
	countCommits()
	addInterrupting()
	name := os.Getenv(roleVariable)
	if name == "" {
		var err error
		if built.dir, err = os.MkdirTemp("", "semel-integration-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		code := services.Main(m)
		os.RemoveAll(built.dir)
		os.Exit(code)
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no role %q\n", name)
		os.Exit(2)
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
