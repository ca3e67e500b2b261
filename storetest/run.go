package storetest

import (
	"slices"
	"testing"

	"github.com/semel-dev/semel"
)

// Run holds the store that h makes to the contract. Each rule is a subtest
// with a store of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if missing := h.missing(t); len(missing) > 0 {
		for _, m := range missing {
			t.Error("storetest: " + m)
		}
		t.FailNow()
	}
	for _, c := range chapters() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range c.rules {
				if r.needs&h.Lacks != 0 {
					continue
				}
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					h.around(t, func(t *testing.T) { r.test(newSubject(t, h)) })
				})
			}
		})
	}
}

// rule is one sentence of the contract with its test.
type rule struct {
	name  string
	needs Ability
	test  func(s *subject)
}

// chapter is the rules on one thing.
type chapter struct {
	name  string
	rules []rule
}

func chapters() []chapter {
	return slices.Concat(
		claimChapters,
		recoveryChapters,
		fingerprintChapters,
		leaseChapters,
		finishChapters,
		replyChapters,
		retentionChapters,
		scheduleChapters,
		settleChapters,
		listChapters,
		eraseChapters,
		keyChapters,
		clockChapters,
		raceChapters,
		crashChapters,
		joinedChapters,
		atomicChapters,
		processChapters,
	)
}

// missing says, a sentence each, what h neither provides nor disclaims. It
// notes that a store is no semel.AtomicJoiner.
func (h *Harness) missing(t *testing.T) []string {
	if h.New == nil || h.Advance == nil {
		return []string{"Harness.New and Harness.Advance are required"}
	}
	var store semel.Store
	h.around(t, func(t *testing.T) { store = h.New(t) })
	_, auditor := semel.As[semel.Auditor](store)
	_, joiner := semel.As[semel.Joiner](store)
	_, lister := semel.As[semel.Lister](store)
	_, eraser := semel.As[semel.Eraser](store)
	_, scheduler := semel.As[semel.SweepScheduler](store)
	_, atomic := semel.As[semel.AtomicJoiner](store)
	if !atomic {
		h.Lacks |= atomicMode
	}
	var all []string
	for _, a := range []struct {
		ability  Ability
		provided bool
		text     string
	}{
		{Auditing, auditor, "the store is no semel.Auditor: make it one, or name Auditing in Harness.Lacks"},
		{Joining, joiner && h.Business != nil, "joined mode needs a semel.Joiner and Harness.Business; or name Joining in Harness.Lacks"},
		{atomicMode, h.Business != nil, "atomic mode, which the store has, needs Harness.Business"},
		{Processes, h.Process != nil, "Harness.Process is not set: set it, or name Processes in Harness.Lacks"},
		{WriteCounting, h.Writes != nil, "Harness.Writes is not set: set it, or name WriteCounting in Harness.Lacks"},
		{Stalling, h.Stall != nil, "Harness.Stall is not set: set it, or name Stalling in Harness.Lacks"},
		{Listing, lister, "the store is no semel.Lister: make it one, or name Listing in Harness.Lacks"},
		{Erasing, eraser, "the store is no semel.Eraser: make it one, or name Erasing in Harness.Lacks"},
		{Scheduling, scheduler, "the store is no semel.SweepScheduler: make it one, or name Scheduling in Harness.Lacks"},
	} {
		if !a.provided && h.Lacks&a.ability == 0 {
			all = append(all, a.text)
		}
	}
	return all
}

func (h *Harness) around(t *testing.T, body func(t *testing.T)) {
	if h.Around == nil {
		body(t)
		return
	}
	h.Around(t, body)
}
