package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// settle is a settlement of k1 by somebody who has just looked at it.
func (f *fixture) settle(t *testing.T, as semel.SettleAs, change func(*semel.SettleParams)) (semel.Record, error) {
	t.Helper()
	p := semel.SettleParams{Expect: f.record(t), As: as, Actor: "ada", Reason: "asked the bank"}
	if change != nil {
		change(&p)
	}
	return f.Settle(t.Context(), p)
}

// untilQuiet waits until no effect of the last attempt can still be on its way.
func untilQuiet() { time.Sleep(semel.DefaultHandlerDeadline + semel.DefaultSettleDelay) }

func TestSettling(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, f *fixture){
		"done with a reply gives the reply to repeats": func(t *testing.T, f *fixture) {
			rec, err := f.settle(t, semel.SettleDone, func(p *semel.SettleParams) { p.Reply = &semel.Reply{Body: []byte("it was paid")} })
			assert.NoError(t, err)
			assert.Equal(t, rec.State, semel.StateDone)
			assert.Equal(t, rec.Open, false)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, string(res.Reply.Body), "it was paid")
		},
		"done without a reply tells repeats that it was not kept": func(t *testing.T, f *fixture) {
			_, err := f.settle(t, semel.SettleDone, nil)
			assert.NoError(t, err)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReplyNotKept)
		},
		"not applied is refused while an effect may be on its way": func(t *testing.T, f *fixture) {
			_, err := f.settle(t, semel.SettleNotApplied, nil)
			assert.ErrorIs(t, err, semel.ErrSettleRefused)
			assert.Contains(t, err.Error(), "wait 5m30s more")
			assert.Equal(t, f.record(t).State, semel.StateRunning)
		},
		"not applied frees the key, under the same operation id": func(t *testing.T, f *fixture) {
			before := f.record(t)
			untilQuiet()
			rec, err := f.settle(t, semel.SettleNotApplied, nil)
			assert.NoError(t, err)
			assert.Equal(t, rec.State, semel.StateReleased)
			res, err := f.Do(t.Context(), call("a"), answers("paid"))
			assert.NoError(t, err)
			assert.Equal(t, res.Record.OperationID, before.OperationID)
		},
		"not applied may be overridden by name": func(t *testing.T, f *fixture) {
			_, err := f.settle(t, semel.SettleNotApplied, func(p *semel.SettleParams) { p.Override = true })
			assert.NoError(t, err)
			audits := f.audits(t)
			assert.Equal(t, len(audits), 2)
			assert.Equal(t, audits[1].Audit, semel.Audit{Actor: "ada", Reason: "asked the bank", Override: true})
			assert.Equal(t, audits[1].To, semel.StateReleased)
		},
		"start over runs under a new operation id that outlives the record": func(t *testing.T, f *fixture) {
			before := f.record(t)
			untilQuiet()
			_, err := f.settle(t, semel.SettleStartOver, nil)
			assert.NoError(t, err)
			first, err := f.Do(t.Context(), call("a"), answers("paid"))
			assert.NoError(t, err)
			want := semel.NewOperationID(semel.DefaultService, "payments", "k1", 1)
			assert.Equal(t, first.Record.OperationID, want)
			assert.Equal(t, want != before.OperationID, true)
			time.Sleep(semel.DefaultRetention)
			_, err = f.store.Sweep(t.Context(), 10)
			assert.NoError(t, err)
			later, err := f.Do(t.Context(), call("b"), answers("again"))
			assert.NoError(t, err)
			assert.Equal(t, later.Record.OperationID, want)
		},
		"over a newer attempt is refused": func(t *testing.T, f *fixture) {
			seen := f.record(t)
			f.begin(t, "a", time.Second)
			time.Sleep(time.Minute)
			_, err := f.settle(t, semel.SettleDone, func(p *semel.SettleParams) { p.Expect = seen })
			assert.ErrorIs(t, err, semel.ErrSettleRefused)
			assert.Contains(t, err.Error(), "moved on to attempt 2")
		},
		"a live attempt is refused": func(t *testing.T, f *fixture) {
			f.begin(t, "a", time.Minute)
			_, err := f.settle(t, semel.SettleDone, nil)
			assert.ErrorIs(t, err, semel.ErrSettleRefused)
			assert.Contains(t, err.Error(), "its lease has 1m0s left")
		},
		"twice is refused": func(t *testing.T, f *fixture) {
			_, err := f.settle(t, semel.SettleDone, nil)
			assert.NoError(t, err)
			_, err = f.settle(t, semel.SettleDone, nil)
			assert.ErrorIs(t, err, semel.ErrSettleRefused)
			assert.Contains(t, err.Error(), "done already")
		},
		"what is not there is refused, also if the record is the absent one of Get": func(t *testing.T, f *fixture) {
			absent, err := f.Get(t.Context(), "payments", "other")
			assert.NoError(t, err)
			for _, expect := range []func(*semel.SettleParams){
				func(p *semel.SettleParams) { p.Expect.Key = "other" },
				func(p *semel.SettleParams) { p.Expect = absent },
			} {
				_, err := f.settle(t, semel.SettleDone, expect)
				assert.ErrorIs(t, err, semel.ErrSettleRefused)
				assert.Contains(t, err.Error(), "there is no record under this scope and key")
			}
		},
		"without actor, reason, kind or record names what is missing": func(t *testing.T, f *fixture) {
			for field, change := range map[string]func(*semel.SettleParams){
				"Actor":       func(p *semel.SettleParams) { p.Actor = "" },
				"Reason":      func(p *semel.SettleParams) { p.Reason = "" },
				"As":          func(p *semel.SettleParams) { p.As = 0 },
				"Reply":       func(p *semel.SettleParams) { p.As, p.Reply = semel.SettleNotApplied, &semel.Reply{} },
				"status 1000": func(p *semel.SettleParams) { p.Reply = &semel.Reply{Status: 1000} },
				"header name": func(p *semel.SettleParams) { p.Reply = &semel.Reply{Header: semel.Header{"A:": {"b"}}} },
				"Expect":      func(p *semel.SettleParams) { p.Expect = semel.Record{} },
			} {
				_, err := f.settle(t, semel.SettleDone, change)
				assert.ErrorIs(t, err, semel.ErrConfig)
				assert.Contains(t, err.Error(), field)
			}
		},
		"that dies half-way leaves the record unsettled": func(t *testing.T, f *fixture) {
			f.store.failBefore(only("Finish", 1))
			_, err := f.settle(t, semel.SettleDone, nil)
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			time.Sleep(time.Minute)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			rec, err := f.settle(t, semel.SettleDone, nil)
			assert.NoError(t, err)
			assert.Equal(t, rec.State, semel.StateDone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, semel.Hold(), semel.Config{})
				f.begin(t, "a", 30*time.Second)
				time.Sleep(30 * time.Second)
				test(t, f)
			})
		})
	}
}

func (f *fixture) audits(t *testing.T) []semel.AuditEntry {
	t.Helper()
	auditor, ok := semel.As[semel.Auditor](f.store.Store)
	assert.Equal(t, ok, true)
	entries, err := auditor.Audits(context.Background(), "payments", "k1")
	assert.NoError(t, err)
	return entries
}
