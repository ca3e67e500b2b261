package semel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// What the transitions do is tested through stores, by storetest. Here are the
// instants that a store on a real clock cannot be made to hit, and what holds
// over any history.

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func protocolParams(token byte) semel.BeginParams {
	return semel.BeginParams{
		Scope:        "scope",
		Key:          "key",
		Token:        semel.Token{token},
		Lease:        time.Minute,
		ResumeWithin: time.Hour,
	}
}

// claimedRecord is a record that token 1 claimed at epoch.
func claimedRecord() semel.Record {
	r := semel.Record{Now: epoch}
	r.Begin(protocolParams(1))
	return r
}

func TestProtocolAtTheInstant(t *testing.T) {
	t.Parallel()
	finished := func(to semel.State) semel.Record {
		r := claimedRecord()
		r.Finish(r.Claim(), semel.FinishParams{To: to, Retention: time.Hour})
		return r
	}
	quiet := protocolParams(2)
	quiet.Force = &semel.Force{Attempt: 1, Token: semel.Token{1}, QuietFor: time.Hour}
	hold := protocolParams(2)
	hold.ResumeWithin = 0

	for name, c := range map[string]struct {
		record semel.Record
		params semel.BeginParams
		after  time.Duration // since epoch
		want   semel.BeginOutcome
	}{
		"a lease holds until just before its end":            {claimedRecord(), protocolParams(2), time.Minute - 1, semel.BeginBusy},
		"a lease has lapsed at its end":                      {claimedRecord(), protocolParams(2), time.Minute, semel.BeginClaimed},
		"under Hold it has lapsed at its end too":            {claimedRecord(), hold, time.Minute, semel.BeginUnknown},
		"ResumeWithin includes its last instant":             {claimedRecord(), protocolParams(2), time.Hour, semel.BeginClaimed},
		"ResumeWithin is over just after it":                 {claimedRecord(), protocolParams(2), time.Hour + 1, semel.BeginUnknown},
		"a done record replays until just before its expiry": {finished(semel.StateDone), protocolParams(2), time.Hour - 1, semel.BeginReplay},
		"a done record is absent at its expiry":              {finished(semel.StateDone), protocolParams(2), time.Hour, semel.BeginClaimed},
		"a settlement is refused just before QuietFor":       {claimedRecord(), quiet, time.Hour - 1, semel.BeginUnknown},
		"a settlement is accepted at QuietFor":               {claimedRecord(), quiet, time.Hour, semel.BeginClaimed},
		"a clock that was adjusted back leaves a lease":      {claimedRecord(), protocolParams(2), -time.Second, semel.BeginBusy},
		"a clock that was set back makes a lease lapse":      {claimedRecord(), protocolParams(2), -time.Second - 1, semel.BeginClaimed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.record
			r.Now = epoch.Add(c.after)
			before := r
			res, changed := r.Begin(c.params)
			assert.Equal(t, res.Outcome, c.want, "outcome")
			assert.Equal(t, res.Record, r, "record of the answer")
			assert.Equal(t, changed, c.want == semel.BeginClaimed, "changed")
			if !changed {
				assert.Equal(t, r, before, "a record that was not changed")
			}
		})
	}

	t.Run("a sweep leaves alone what expires an instant later", func(t *testing.T) {
		t.Parallel()
		r := finished(semel.StateReleased)
		r.Now = epoch.Add(time.Hour - 1)
		remove, tombstone := r.Sweep()
		assert.Equal(t, []bool{remove, tombstone}, []bool{false, false}, "remove, tombstone")
		r.Now = epoch.Add(time.Hour)
		remove, tombstone = r.Sweep()
		assert.Equal(t, []bool{remove, tombstone}, []bool{true, false}, "remove, tombstone")
	})
}

// TestProtocolHistories runs many seeded histories of one key with rivals,
// late calls, settlers and sweeps, and checks after each step what must hold
// in all of them.
func TestProtocolHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		h := history{T: t, rng: rand.New(rand.NewPCG(seed, 0)), record: semel.Record{Now: epoch}}
		for step := range 60 {
			before := h.record
			what, changed := h.step()
			h.check(before, changed)
			if t.Failed() {
				t.Fatalf("seed %d, step %d, %s:\nbefore %+v\nafter  %+v", seed, step, what, before, h.record)
			}
		}
	}
}

type history struct {
	*testing.T

	rng    *rand.Rand
	record semel.Record
	tokens byte
	claims []semel.Claim // all that were ever won
}

func (h *history) step() (what string, changed bool) {
	r := &h.record
	r.Now = r.Now.Add(time.Duration(h.rng.IntN(40)) * time.Second)
	switch n := h.rng.IntN(10); {
	case n < 4:
		return h.begin()
	case n == 4:
		remove, tombstone := r.Sweep()
		if remove && !tombstone {
			h.record = semel.Record{Now: r.Now}
		}
		return "Sweep", remove
	case len(h.claims) == 0:
		return "nothing", false
	}
	// Mostly the latest claim calls, sometimes one from long ago.
	c := h.claims[len(h.claims)-1]
	if h.rng.IntN(3) == 0 {
		c = h.claims[h.rng.IntN(len(h.claims))]
	}
	latest := r.State != semel.StateAbsent && c == r.Claim()
	var held semel.Held
	if h.rng.IntN(3) == 0 {
		held, changed = r.Extend(c, semel.ExtendParams{Lease: time.Minute, ReplyStarted: h.rng.IntN(8) == 0})
		what = "Extend"
	} else {
		p := semel.FinishParams{To: semel.StateDone + semel.State(h.rng.IntN(3)), Retention: 3 * time.Minute}
		held, changed = r.Finish(c, p)
		what = fmt.Sprintf("Finish to %v", p.To)
	}
	if (held.Status == semel.HeldSuperseded) == latest || held.State != r.State {
		h.Errorf("got %+v for the latest claim: %v", held, latest)
	}
	return what, changed
}

func (h *history) begin() (what string, changed bool) {
	h.tokens++
	p := protocolParams(h.tokens)
	p.ResumeWithin = []time.Duration{0, 5 * time.Minute, semel.Forever}[h.rng.IntN(3)]
	if h.rng.IntN(4) == 0 {
		p.Force = &semel.Force{Attempt: h.record.Attempt, Token: h.record.Token}
	}
	found := h.record
	res, changed := h.record.Begin(p)
	if (res.Outcome == semel.BeginClaimed) != changed {
		h.Errorf("got outcome %v with changed %v", res.Outcome, changed)
	}
	if from := res.From; from != semel.StateAbsent && (!changed || found.Expired() || from != found.State) {
		h.Errorf("got From %v with changed %v, for a record that was %v", from, changed, found.State)
	}
	if changed {
		h.claims = append(h.claims, h.record.Claim())
	}
	return fmt.Sprintf("Begin forced: %v", p.Force != nil), changed
}

func (h *history) check(before semel.Record, changed bool) {
	r := h.record
	expired := before
	expired.Now = r.Now
	newLife := before.State == semel.StateAbsent || expired.Expired()
	final := before.State == semel.StateDone || before.State == semel.StateReleased
	ended := r.State == semel.StateDone || r.State == semel.StateReleased

	assert.Equal(h, r.Expires.IsZero(), !ended, "only what has ended expires: that it does not")
	assert.True(h, r.State != semel.StateReleased || !r.Open, "released is known of all attempts (M2)")
	if !changed {
		before.Now = r.Now
		assert.Equal(h, r, before, "an unchanged record")
		return
	}
	if newLife {
		return
	}
	assert.True(h, r.Attempt == before.Attempt || r.Attempt == before.Attempt+1, "attempts count by one")
	assert.Equal(h, r.Token == before.Token, r.Attempt == before.Attempt, "each attempt has a token: the same one")
	assert.Equal(h, r.FirstStarted, before.FirstStarted, "first start")
	assert.Equal(h, r.OperationID, before.OperationID, "operation id")
	assert.True(h, !before.Open || r.Open || r.State == semel.StateDone, "what is open stays so")
	assert.True(h, !final || before.State == semel.StateReleased && r.State == semel.StateRunning, "done is final, and released gives way to a claim alone")
	assert.True(h, !before.ReplyStarted || r.ReplyStarted || before.State == semel.StateReleased, "a started reply stays so")
}

func TestWhatASettlementLeavesInTheLog(t *testing.T) {
	t.Parallel()
	audit := semel.Audit{Actor: "ops", Reason: "asked the bank"}
	lapsed := claimedRecord()
	lapsed.Now = epoch.Add(time.Hour)
	forced := protocolParams(2)
	forced.Force = &semel.Force{Attempt: 1, Token: semel.Token{1}, Audit: audit}

	r := lapsed
	res, _ := r.Begin(protocolParams(2))
	assert.Equal(t, res.From, semel.StateRunning, "where a takeover found the record")
	assert.True(t, new(protocolParams(2)).AuditEntry(&res) == nil, "a takeover that nobody forced leaves nothing")

	r = lapsed
	res, _ = r.Begin(forced)
	want := semel.AuditEntry{Scope: "scope", Key: "key", Attempt: 2, To: semel.StateRunning, Audit: audit, At: r.Now}
	assert.Equal(t, forced.AuditEntry(&res), &want, "line of a forced Begin")
	res, changed := r.Begin(forced)
	assert.True(t, changed, "the lease is renewed")
	assert.True(t, forced.AuditEntry(&res) == nil, "the same Begin again leaves nothing")

	refused := claimedRecord()
	res, _ = refused.Begin(forced)
	assert.Equal(t, res.From, semel.StateAbsent, "From of a refused Begin")
	assert.True(t, forced.AuditEntry(&res) == nil, "a refused Begin leaves nothing")

	end := semel.FinishParams{To: semel.StateReleased, Retention: time.Hour, Settlement: &semel.Settlement{Audit: audit}}
	want.To = semel.StateReleased
	_, changed = r.Finish(r.Claim(), end)
	assert.Equal(t, end.AuditEntry(&r, changed), &want, "line of the end")
	_, changed = r.Finish(r.Claim(), end)
	assert.True(t, end.AuditEntry(&r, changed) == nil, "the same end again leaves nothing")
	end.Settlement = nil
	assert.True(t, end.AuditEntry(&r, true) == nil, "an end that settles nothing leaves nothing")
}
