package storetest

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// Harness tells Run how to make and handle the store under test. New and
// Advance are required; of the rest, each is provided or named in Lacks.
type Harness struct {
	// New returns an empty store of its own for this test, and has it closed
	// by t.Cleanup. Tests run in parallel.
	New func(t *testing.T) semel.Store

	// Advance moves the clock of s, the store that New returned, by d, as if
	// that time had passed. It moves only that store's clock, in this process.
	// A store that reads time.Now runs inside a bubble (see Around) and sleeps.
	Advance func(t *testing.T, s semel.Store, d time.Duration)

	// Around runs the body of each test, to put something around it: for a
	// store that reads time.Now, synctest.Test. The body starts no subtests.
	// Optional.
	Around func(t *testing.T, body func(t *testing.T))

	// Writes returns how many writes s has committed or, if that is easier,
	// attempted; only its differences count. See WriteCounting.
	Writes func(t *testing.T, s semel.Store) int64

	// Stall keeps every write to s waiting, as a lock or a long queue would,
	// until resume is called. See Stalling.
	Stall func(t *testing.T, s semel.Store) (resume func())

	// Business is the work of joined mode. See Joining.
	Business *Business

	// Process returns a command, not yet started, that opens the store that s
	// keeps its records in and calls Worker.Serve on its standard input and
	// output. Its standard error goes to the test's. See Processes.
	Process func(t *testing.T, s semel.Store) *exec.Cmd

	// Lacks names what the store, or this harness, cannot do.
	Lacks Ability
}

// Business is some work in the store's database: a table that rows can be
// added to.
type Business struct {
	// Write adds one row through the transaction in ctx, which it opens.
	Write func(ctx context.Context) error
	// Rows counts the rows that are committed.
	Rows func(t *testing.T, s semel.Store) int
}

// Ability is a set of things that not every store can do.
type Ability uint16

// The abilities.
const (
	// Auditing: the store is a semel.Auditor.
	Auditing Ability = 1 << iota
	// Joining: the store is a semel.Joiner, and Harness.Business is set.
	Joining
	// Processes: several processes can share the store, and Harness.Process
	// is set.
	Processes
	// WriteCounting: Harness.Writes is set.
	WriteCounting
	// Stalling: Harness.Stall is set.
	Stalling
	// Listing: the store is a semel.Lister.
	Listing
	// Erasing: the store is a semel.Eraser.
	Erasing
	// Scheduling: the store is a semel.SweepScheduler.
	Scheduling

	// atomicMode: the store is a semel.AtomicJoiner. Its rules hold for one
	// that is, and no other has anything to name.
	atomicMode
)
