package integration

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// Faults that idempotency layers had in public, as far as a store decides them.

func TestSQLiteReleaseOfASlowOwnerLeavesTheNewOwnersClaim(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	a, err := s.Begin(t.Context(), beginFor("K1"))
	assert.NoError(t, err)
	assert.NoError(t, s.clock.Advance(90*time.Second))
	b, err := s.Begin(t.Context(), beginFor("K1"))
	assert.NoError(t, err)
	assert.Equal(t, b.Outcome, semel.BeginClaimed)
	assert.Equal(t, b.From, semel.StateRunning, "B took over")

	released := semel.FinishParams{To: semel.StateReleased, Retention: time.Hour}
	held, err := s.Finish(t.Context(), a.Record.Claim(), released)
	assert.NoError(t, err)
	assert.Equal(t, held.Status, semel.HeldSuperseded, "A's release")
	c, err := s.Begin(t.Context(), beginFor("K1"))
	assert.NoError(t, err)
	assert.Equal(t, c.Outcome, semel.BeginBusy, "C, while B owns the key")
	assert.Equal(t, c.Record.Token, b.Record.Token)
}

// Who loses the race for a key gets its state, never an error, and unrelated
// keys are served.
func TestSQLiteLostRaceIsNoOutage(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	for i := range 10 {
		key := string(rune('a' + i))
		resume := stall(t, s) // both have read "absent" and wait to write
		results := make(chan semel.BeginResult, 2)
		for range cap(results) {
			go func() {
				res, err := s.Begin(context.Background(), beginFor(key))
				if err != nil {
					t.Error(err)
				}
				results <- res
			}()
		}
		resume()
		outcomes := map[semel.BeginOutcome]int{}
		for range cap(results) {
			outcomes[(<-results).Outcome]++
		}
		assert.Equal(t, outcomes, map[semel.BeginOutcome]int{semel.BeginClaimed: 1, semel.BeginBusy: 1})
		other, err := s.Begin(t.Context(), beginFor("other-"+key))
		assert.NoError(t, err)
		assert.Equal(t, other.Outcome, semel.BeginClaimed)
	}
}

func TestSQLiteExpiredRecordNeitherAnswersNorBlocksThoughItIsNotSwept(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	for _, key := range []string{"K1", "K2"} {
		res, err := s.Begin(t.Context(), beginFor(key))
		assert.NoError(t, err)
		done := doneWith("first life")
		done.Retention = time.Minute
		_, err = s.Finish(t.Context(), res.Record.Claim(), done)
		assert.NoError(t, err)
	}
	assert.NoError(t, s.clock.Advance(55*time.Second))
	res, err := s.Begin(t.Context(), beginFor("K1"))
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.BeginReplay, "just before it expires")

	assert.NoError(t, s.clock.Advance(6*time.Second))
	other := beginFor("K1")
	other.Fingerprint = semel.FingerprintOf([]byte(`{"qty":2}`))
	res, err = s.Begin(t.Context(), other)
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.BeginClaimed, "another request, after it has expired")
	assert.Equal(t, res.Record.Attempt, int64(1), "attempt of the new life")
	assert.Equal(t, res.From, semel.StateAbsent)

	outcomes := make(chan semel.BeginOutcome, 20)
	for range cap(outcomes) {
		go func() {
			res, err := s.Begin(context.Background(), beginFor("K2"))
			if err != nil {
				t.Error(err)
			}
			outcomes <- res.Outcome
		}()
	}
	got := map[semel.BeginOutcome]int{}
	for range cap(outcomes) {
		got[<-outcomes]++
	}
	assert.Equal(t, got, map[semel.BeginOutcome]int{semel.BeginClaimed: 1, semel.BeginBusy: 19}, "twenty at once")
}

// No process's clock decides anything. The times of a record are the
// database's, also when a claim had to queue.
func TestSQLiteDecidesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	t.Run("the wait that is asked for lies within the lease", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		// Whatever a process's clock says, it is the database's that moved.
		assert.NoError(t, s.clock.Advance(-30*time.Second))
		_, err := s.Begin(t.Context(), beginFor("K1"))
		assert.NoError(t, err)
		res, err := s.Begin(t.Context(), beginFor("K1"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.BeginBusy)
		left := res.Record.LeaseLeft()
		assert.True(t, left > 0 && left <= time.Minute, "lease left: got %v, want within (0, 1m]", left)
	})
	t.Run("a lease counts from when the claim was made, not from when it began to wait", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		resume := stall(t, s)
		claimed := make(chan semel.BeginResult, 1)
		go func() {
			res, err := s.Begin(context.Background(), beginFor("K1"))
			if err != nil {
				t.Error(err)
			}
			claimed <- res
		}()
		assert.Eventually(t, "the claim waits for the writer", func() bool { return s.handles.Write.Stats().InUse == 1 })
		assert.NoError(t, s.clock.Advance(50*time.Second))
		resume()
		res := <-claimed
		assert.Equal(t, res.Record.LeaseLeft(), time.Minute, "lease left at the claim")
		rec, err := s.Get(t.Context(), res.Record.Scope, "K1")
		assert.NoError(t, err)
		assert.True(t, rec.LeaseLeft() > 50*time.Second, "lease left: got %v", rec.LeaseLeft())
	})
}
