package semel_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestTheHeartbeatKeepsTheClaimOfLongWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		go func() {
			time.Sleep(100 * time.Second)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.Equal(t, err, nil)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)
		}()
		res, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			time.Sleep(115 * time.Second)
			return nil, ctx.Err()
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, f.store.count("Extend"), 11) // at 10 s, 20 s … 110 s
	})
}

func TestAnErrorOfTheWork(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	fails := func(context.Context) ([]byte, error) { return nil, boom }
	t.Run("leaves the outcome unknown, and is returned", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		res, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		assert.Equal(t, f.record(t).State, semel.StateUnknown)
		res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
	})
	t.Run("under Resume is run again at once", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		res, err := f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	})
	t.Run("wrapped by NotApplied releases the key", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return nil, semel.NotApplied(boom) })
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.True(t, semel.IsNotApplied(err), "the error says so")
		res, err = f.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	})
	t.Run("wrapped by NotApplied speaks for its own attempt only", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
		_, err := f.Do(t.Context(), call("a"), fails)
		assert.ErrorIs(t, err, boom)
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return nil, semel.NotApplied(boom) })
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		assert.True(t, !semel.IsNotApplied(err), "the error does not say so of the operation")
	})
	t.Run("wrapped by NotApplied loses the mark if that could not be saved", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			f.store.failBefore(only("Finish", -1))
			res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return nil, semel.NotApplied(boom) })
			assert.ErrorIs(t, err, boom)
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			assert.True(t, !semel.IsNotApplied(err), "got %v", err)
		})
	})
	t.Run("wrapped by NotApplied loses the mark if a later attempt is done", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, semel.Hold(), semel.Config{})
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
			f.takenOver(t)
			rival := f.record(t)
			_, err := f.store.Finish(t.Context(), rival.Claim(), semel.FinishParams{To: semel.StateDone, KeepReply: true, Retention: time.Hour})
			assert.NoError(t, err)
			return nil, semel.NotApplied(boom)
		})
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
		assert.True(t, !semel.IsNotApplied(err), "got %v", err)
	})
}

func TestAPanicPassesThroughAndLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
	func() {
		defer func() { assert.Equal(t, recover(), any("boom")) }()
		_, _ = f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { panic("boom") })
	}()
	assert.Equal(t, f.record(t).State, semel.StateUnknown)
	res, err := f.Do(t.Context(), call("a"), answers("paid"))
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
}

func TestWorkThatEndsItsGoroutineIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
		runtime.Goexit()
		return nil, nil
	})
	assert.ErrorIs(t, err, semel.ErrGoexit)
	assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
}

func TestACallerWhoHangsUpDoesNotUndoTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, semel.Hold(), semel.Config{})
	ctx, hangUp := context.WithCancel(t.Context())
	res, err := f.Do(ctx, call("a"), func(ctx context.Context) ([]byte, error) {
		hangUp()
		return []byte("paid"), ctx.Err()
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
	assert.NoError(t, err)
	assert.Equal(t, string(res.Reply.Body), "paid")
}

func TestAtTheHandlerDeadline(t *testing.T) {
	t.Parallel()
	t.Run("the caller is answered, and the claim is kept until the work returns", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			start := time.Now()
			_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				time.Sleep(7 * time.Minute) // deaf to ctx
				assert.Equal(t, context.Cause(ctx), error(semel.ErrStillRunning))
				return []byte("paid"), nil
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			assert.Equal(t, time.Since(start), 5*time.Minute)

			time.Sleep(time.Minute)
			res, err := f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeInProgress)

			time.Sleep(time.Minute + time.Second)
			res, err = f.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
			assert.Equal(t, string(res.Reply.Body), "paid")
		})
	})
	t.Run("a panic of forgotten work stops nothing else", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{HandlerDeadline: time.Second})
			_, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				time.Sleep(2 * time.Second)
				panic("boom")
			})
			assert.ErrorIs(t, err, semel.ErrStillRunning)
			time.Sleep(2 * time.Second)
			assert.Equal(t, f.record(t).State, semel.StateUnknown)
		})
	})
}

// boundedStore is a store that refuses replies over a size, as others do.
type boundedStore struct {
	semel.Store

	most int64
}

func (s *boundedStore) MaxReply() int64 { return s.most }

func (s *boundedStore) Unwrap() semel.Store { return s.Store }

// A reply that no store can save, or this one, fails Finish for good: without
// its end the work would run at every retry.
func TestAReplyThatCannotBeSavedIsNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply semel.Reply
		saved int // status
	}{
		"a header without a name":   {semel.Reply{Status: 201, Header: semel.Header{"": {"x"}, "Good": {"y"}}, Body: []byte("paid")}, 201},
		"a colon in a name":         {semel.Reply{Status: 201, Header: semel.Header{"Bad:Name": {"x"}}}, 201},
		"a line break in a name":    {semel.Reply{Status: 201, Header: semel.Header{"Bad\nName": {"x"}}}, 201},
		"a status of two digits":    {semel.Reply{Status: 99, Body: []byte("paid")}, 0},
		"a status of four digits":   {semel.Reply{Status: 1000, Body: []byte("paid")}, 0},
		"a status below zero":       {semel.Reply{Status: -201}, 0},
		"more than the store takes": {semel.Reply{Status: 201, Header: semel.Header{"A": {"b"}}, Body: make([]byte, 100-len("A: b\n")+1)}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			store := &boundedStore{newFaultStore(t), 100}
			g, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			assert.NoError(t, err)
			first, err := g.Run(t.Context(), call("a"), func(context.Context) semel.Completion {
				return semel.Completion{Verdict: semel.VerdictKeep, Reply: c.reply}
			})
			assert.NoError(t, err)
			assert.Equal(t, first.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, first.Reply, c.reply)
			assert.Contains(t, log.String(), "level=ERROR msg=\"semel: the reply cannot be saved")
			again, err := g.Do(t.Context(), call("a"), mustNotRun(t))
			assert.NoError(t, err)
			assert.Equal(t, again.Outcome, semel.OutcomeReplyNotKept)
			assert.Equal(t, again.Reply, semel.Reply{Status: c.saved})
		})
	}
	t.Run("but one as large as the store takes is", func(t *testing.T) {
		t.Parallel()
		g, err := semel.New(&boundedStore{newFaultStore(t), 100}, semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		_, err = g.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) { return make([]byte, 100), nil })
		assert.NoError(t, err)
		again, err := g.Do(t.Context(), call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, again.Outcome, semel.OutcomeReplayed)
	})
	t.Run("nor its status alone, where that is none", func(t *testing.T) {
		t.Parallel()
		g, err := semel.New(newFaultStore(t), semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		_, err = g.Run(t.Context(), call("a"), func(context.Context) semel.Completion {
			return semel.Completion{Verdict: semel.VerdictKeepNoReply, Reply: semel.Reply{Status: 1 << 40}}
		})
		assert.NoError(t, err)
		again, err := g.Do(t.Context(), call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, again.Reply, semel.Reply{})
	})
}

// Nobody is told of work past its deadline but by the log.
func TestHowForgottenWorkEndedIsLogged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func() ([]byte, error)
		want string
	}{
		"it returned":            {func() ([]byte, error) { return nil, nil }, `level=WARN msg="semel: work returned after its deadline"`},
		"it panicked":            {func() ([]byte, error) { panic("out of paper") }, `panic="out of paper" stack=`},
		"it ended its goroutine": {func() ([]byte, error) { runtime.Goexit(); return nil, nil }, `level=ERROR msg="semel: work ended its goroutine after its deadline"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				cfg := semel.Config{HandlerDeadline: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				g, err := semel.New(newFaultStore(t), semel.Hold(), cfg)
				assert.NoError(t, err)
				_, err = g.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
					time.Sleep(2 * time.Second)
					return tt.end()
				})
				assert.ErrorIs(t, err, semel.ErrStillRunning)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				assert.Contains(t, log.String(), tt.want)
				assert.Contains(t, log.String(), "attempt=1")
			})
		})
	}
}

func TestForgottenWorkThatWasUndoneIsNotLoggedAsUnsaved(t *testing.T) {
	t.Parallel()
	for allInTx, want := range map[bool]semel.State{true: semel.StateReleased, false: semel.StateUnknown} {
		t.Run("and is "+want.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &joinStore{faultStore: newFaultStore(t), commitErr: semel.ErrCommitRefused}
				var log bytes.Buffer
				g, err := semel.New(store, semel.Hold(), semel.Config{HandlerDeadline: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				assert.NoError(t, err)
				c := call("a")
				c.Mode, c.AllInTx = semel.Joined, allInTx
				_, err = g.Run(t.Context(), c, func(ctx context.Context) semel.Completion {
					time.Sleep(2 * time.Second)
					return writesRow(semel.Completion{Verdict: semel.VerdictKeep})(ctx)
				})
				assert.ErrorIs(t, err, semel.ErrStillRunning)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				assert.Contains(t, log.String(), `level=WARN msg="semel: work returned after its deadline and what it returned does not count"`)
				assert.Contains(t, log.String(), "state="+want.String())
				rec, err := store.Get(t.Context(), c.Scope, c.Key)
				assert.NoError(t, err)
				assert.Equal(t, rec.State, want)
			})
		})
	}
}

// ends is a whole operation under c.
func (f *fixture) ends(t *testing.T, c semel.Call, v semel.Verdict) {
	t.Helper()
	res, err := f.Run(t.Context(), c, func(context.Context) semel.Completion {
		return semel.Completion{Verdict: v, Reply: semel.Reply{Body: []byte("another's")}}
	})
	assert.NoError(t, err)
	assert.True(t, res.Ran, "it ran")
}

func TestASupersededAttempt(t *testing.T) {
	t.Parallel()
	// takeOver lets a rival take the lapsed claim and end it, while the
	// owner cannot reach the store and does not listen to its context.
	takeOver := func(t *testing.T, f *fixture) semel.Result {
		t.Helper()
		f.store.failBefore(only("Extend", -1))
		res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
			time.Sleep(32 * time.Second) // between two beats: they fail at 28 s and at 31 s
			f.store.failBefore(nil)
			rival, err := f.Do(t.Context(), call("a"), answers("the rival's"))
			assert.NoError(t, err)
			assert.Equal(t, rival.Outcome, semel.OutcomeExecuted)
			return []byte("mine"), nil
		})
		assert.NoError(t, err)
		return res
	}
	t.Run("shows the winner's reply and not its own", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Resume(semel.Forever), semel.Config{})
			res := takeOver(t, f)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
			assert.Equal(t, string(res.Reply.Body), "the rival's")
			assert.Equal(t, f.counts.Count(semel.EventLeaseLost), int64(1))
		})
	})
	t.Run("is shown nothing of a record that is not of its operation any more", func(t *testing.T) {
		t.Parallel()
		another := call("b")
		sameOfAnother := call("a")
		sameOfAnother.Credential = semel.Digest{1}
		for name, next := range map[string]func(*testing.T, *fixture){
			"it has expired": func(*testing.T, *fixture) {},
			"it has been forgotten": func(t *testing.T, f *fixture) {
				t.Helper()
				_, err := f.store.Sweep(t.Context(), 1)
				assert.NoError(t, err)
			},
			"the key is another request's":       func(t *testing.T, f *fixture) { t.Helper(); f.ends(t, another, semel.VerdictKeep) },
			"another request under it released":  func(t *testing.T, f *fixture) { t.Helper(); f.ends(t, another, semel.VerdictNotApplied) },
			"the key is another caller's":        func(t *testing.T, f *fixture) { t.Helper(); f.ends(t, sameOfAnother, semel.VerdictKeep) },
			"the same request has run once more": func(t *testing.T, f *fixture) { t.Helper(); f.ends(t, call("a"), semel.VerdictKeep) },
			"another request under it runs":      func(t *testing.T, f *fixture) { t.Helper(); f.begin(t, "b", time.Hour) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, semel.Hold(), semel.Config{})
					var mine semel.OperationID
					res, err := f.Run(t.Context(), call("a"), func(ctx context.Context) semel.Completion {
						op, _ := semel.OperationFrom(ctx)
						mine = op.ID
						f.takenOver(t)
						rival := f.record(t)
						_, err := f.store.Finish(t.Context(), rival.Claim(), semel.FinishParams{To: semel.StateDone, KeepReply: true, Retention: time.Second})
						assert.NoError(t, err)
						time.Sleep(time.Second)
						next(t, f)
						return semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Body: []byte("mine")}}
					})
					assert.NoError(t, err)
					assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
					assert.Equal(t, string(res.Reply.Body), "")
					assert.Equal(t, res.Ran, false)
					assert.Equal(t, res.Record.OperationID, mine)
					assert.Equal(t, res.Record.Attempt, int64(1), "the attempt that the record is of")
				})
			})
		}
	})
	t.Run("is told that the key is free when the later attempt was released", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
				// The work is past its deadline and its settle delay, and yet
				// alive: the store's clock has jumped.
				rec := f.record(t)
				_, err := f.store.Store.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: 0})
				assert.NoError(t, err)
				_, err = f.settle(t, semel.SettleNotApplied, func(p *semel.SettleParams) { p.Override = true })
				assert.NoError(t, err)
				return []byte("mine"), nil
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReleased)
			assert.Equal(t, res.Ran, false)
			assert.Equal(t, res.Done(), false)
		})
	})
	for name, lapses := range map[string]func(t *testing.T, f *fixture){
		"has lapsed": func(t *testing.T, f *fixture) {
			t.Helper()
			rec := f.record(t)
			_, err := f.store.Extend(t.Context(), rec.Claim(), semel.ExtendParams{})
			assert.NoError(t, err)
		},
		"has no known end": func(t *testing.T, f *fixture) {
			t.Helper()
			rec := f.record(t)
			_, err := f.store.Finish(t.Context(), rec.Claim(), semel.FinishParams{To: semel.StateUnknown})
			assert.NoError(t, err)
		},
	} {
		t.Run("is told to ask again under Resume, and that nobody knows under Hold, when the later attempt "+name, func(t *testing.T) {
			t.Parallel()
			for recovery, want := range map[semel.Recovery]semel.Outcome{
				semel.Resume(semel.Forever): semel.OutcomeInProgress,
				semel.Hold():                semel.OutcomeUnknown,
			} {
				f := newFixture(t, recovery, semel.Config{})
				res, err := f.Do(t.Context(), call("a"), func(context.Context) ([]byte, error) {
					f.takenOver(t)
					lapses(t, f)
					return []byte("mine"), nil
				})
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, want, "%v", recovery)
				assert.True(t, res.RetryAfter >= 0 && res.RetryAfter <= time.Second, "%v: RetryAfter is %v", recovery, res.RetryAfter)
			}
		})
	}
	t.Run("is cancelled as soon as the store says so", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, semel.Hold(), semel.Config{})
			_, err := f.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
				f.takenOver(t)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			assert.ErrorIs(t, err, semel.ErrSuperseded)
		})
	})
}
