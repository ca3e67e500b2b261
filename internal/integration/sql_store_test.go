package integration

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/storetest"
)

func TestServersMeetTheContract(t *testing.T) {
	t.Parallel()
	for way, server := range held(sqlWays, "PostgreSQL", "MariaDB") {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			whole := t
			storetest.Run(t, storetest.Harness{
				New:     func(t *testing.T) semel.Store { return emptySQL(whole, t, way) },
				Advance: func(t *testing.T, s semel.Store, d time.Duration) { itsSQL(s).advance(t, d) },
				Writes:  func(t *testing.T, s semel.Store) int64 { return itsSQL(s).number(t, server.writes) },
				Stall:   func(t *testing.T, s semel.Store) func() { return itsSQL(s).stall(t) },
				Business: &storetest.Business{
					Write: server.pay,
					Rows:  func(t *testing.T, s semel.Store) int { return itsSQL(s).payments(t) },
				},
				Process: func(_ *testing.T, s semel.Store) *exec.Cmd { return itsSQL(s).worker() },
			})
		})
	}
}

// held are the ways that this run holds to the contract. The race detector,
// which makes them slow, gets one to each server: the others differ in what is
// sent, and not in what runs side by side.
func held[W any](ways map[string]W, raced ...string) map[string]W {
	if !assert.RaceDetector {
		return ways
	}
	few := map[string]W{}
	for _, way := range raced {
		few[way] = ways[way]
	}
	return few
}

func itsSQL(s semel.Store) *sqlStore { return s.(*sqlStore) } //nolint:forcetypeassert // New returns no other.

// sqlWorker is a process that shares a store with the contract's tests. Its
// clock is the server's.
func sqlWorker() error {
	s, err := openSQL(context.Background(), os.Getenv(wayVariable), os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	defer s.handles.Close()
	return storetest.Worker{Store: s, Write: s.server.pay}.Serve(os.Stdin, os.Stdout)
}
