package integration

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/storetest"
)

// The ways to reach PostgreSQL, each of which the contract is held to.
var pgxWays = map[string]pgxConfig{
	"prepared statements":          {},
	"the simple protocol":          {query: "&default_query_exec_mode=simple_protocol"},
	"PgBouncer":                    {pgbouncer: true, Config: pgxstore.Config{TransactionPooler: true}},
	"PgBouncer, extended protocol": {pgbouncer: true, query: "&default_query_exec_mode=exec", Config: pgxstore.Config{TransactionPooler: true}},
}

func TestPgxMeetsTheContract(t *testing.T) {
	t.Parallel()
	for way := range held(pgxWays, "prepared statements") {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, pgxHarness(t, way))
		})
	}
}

func pgxHarness(t *testing.T, way string) storetest.Harness {
	t.Helper()
	whole := t
	return storetest.Harness{
		New:     func(t *testing.T) semel.Store { return emptyPgx(whole, t, way) },
		Advance: func(t *testing.T, s semel.Store, d time.Duration) { itsPgx(s).advance(t, d) },
		Writes:  func(t *testing.T, s semel.Store) int64 { return itsPgx(s).writes(t) },
		Stall:   func(t *testing.T, s semel.Store) func() { return itsPgx(s).stall(t) },
		Business: &storetest.Business{
			Write: pgxPayOne,
			Rows:  func(t *testing.T, s semel.Store) int { return itsPgx(s).payments(t) },
		},
		Process: func(_ *testing.T, s semel.Store) *exec.Cmd {
			pooler := ""
			if itsPgx(s).config.TransactionPooler {
				pooler = "yes"
			}
			return command("pgx-worker", pathVariable+"="+itsPgx(s).url, poolerVariable+"="+pooler)
		},
	}
}

const poolerVariable = "SEMEL_INTEGRATION_POOLER"

func itsPgx(s semel.Store) *pgxStore { return s.(*pgxStore) } //nolint:forcetypeassert // New returns no other.

// pgxWorker is a process that shares a store with the contract's tests.
func pgxWorker() error {
	s, err := pgxstore.Open(context.Background(), os.Getenv(pathVariable), pgxstore.Config{TransactionPooler: os.Getenv(poolerVariable) != "", Hooks: pgxHooks})
	if err != nil {
		return err
	}
	defer s.Close()
	return storetest.Worker{Store: s, Write: pgxPayOne}.Serve(os.Stdin, os.Stdout)
}
