package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

const retention = 24 * time.Hour

func newStore(t testing.TB, cfg memstore.Config) *memstore.Store {
	t.Helper()
	s, err := memstore.New(cfg)
	assert.NoError(t, err)
	return s
}

func params(key string) semel.BeginParams {
	return semel.BeginParams{
		Scope:       "scope",
		Key:         key,
		Token:       semel.NewToken(),
		OperationID: semel.NewOperationID("memstore", "scope", key, 0),
		Lease:       time.Minute,
	}
}

func begin(t testing.TB, s *memstore.Store, p semel.BeginParams) semel.BeginResult {
	t.Helper()
	res, err := s.Begin(t.Context(), p)
	assert.NoError(t, err)
	return res
}

// run claims key and finishes it.
func run(t testing.TB, s *memstore.Store, key string, p semel.FinishParams) {
	t.Helper()
	res := begin(t, s, params(key))
	assert.Equal(t, res.Outcome, semel.BeginClaimed, "claim of %s", key)
	if p.Retention == 0 {
		p.Retention = retention
	}
	held, err := s.Finish(t.Context(), res.Record.Claim(), p)
	assert.NoError(t, err)
	assert.Equal(t, held.Status, semel.HeldYes, "finish of %s", key)
}

func done(body string) semel.FinishParams {
	return semel.FinishParams{To: semel.StateDone, KeepReply: true, Reply: semel.Reply{Body: []byte(body)}}
}

func wantStates(t testing.TB, s *memstore.Store, want map[string]semel.State) {
	t.Helper()
	for key, state := range want {
		rec, err := s.Get(t.Context(), "scope", key)
		assert.NoError(t, err)
		assert.Equal(t, rec.State, state, "state of %s", key)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]memstore.Config{
		"MaxRecords is -1":    {MaxRecords: -1},
		"MaxReplyBytes is -2": {MaxReplyBytes: -2},
	} {
		t.Run("a bound below zero is refused by name: "+field, func(t *testing.T) {
			t.Parallel()
			_, err := memstore.New(cfg)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), field)
		})
	}
	t.Run("the class is best effort", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, semel.ClassOf(newStore(t, memstore.Config{})), semel.BestEffort)
	})
}

func TestFull(t *testing.T) {
	t.Parallel()
	unknown := semel.FinishParams{To: semel.StateUnknown}
	released := semel.FinishParams{To: semel.StateReleased}

	t.Run("the record that was done first goes first, whenever it was claimed", func(t *testing.T) {
		t.Parallel()
		s := newStore(t, memstore.Config{MaxRecords: 3})
		slow := begin(t, s, params("slow"))
		run(t, s, "first", done("1"))
		run(t, s, "second", done("2"))
		_, err := s.Finish(t.Context(), slow.Record.Claim(), semel.FinishParams{To: semel.StateDone, Retention: retention})
		assert.NoError(t, err)
		begin(t, s, params("new"))
		begin(t, s, params("newer"))
		wantStates(t, s, map[string]semel.State{
			"first": semel.StateAbsent, "second": semel.StateAbsent, "slow": semel.StateDone,
			"new": semel.StateRunning, "newer": semel.StateRunning,
		})
	})

	t.Run("running, lapsed and unknown records stay and a new key is refused", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, memstore.Config{MaxRecords: 3})
			begin(t, s, params("lapsed"))
			run(t, s, "unknown", unknown)
			time.Sleep(time.Hour)
			begin(t, s, params("running"))
			_, err := s.Begin(t.Context(), params("new"))
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Contains(t, err.Error(), "MaxRecords")
			wantStates(t, s, map[string]semel.State{
				"lapsed": semel.StateRunning, "unknown": semel.StateUnknown,
				"running": semel.StateRunning, "new": semel.StateAbsent,
			})
		})
	})

	t.Run("a known key is answered all the same", func(t *testing.T) {
		t.Parallel()
		s := newStore(t, memstore.Config{MaxRecords: 1})
		begin(t, s, params("running"))
		assert.Equal(t, begin(t, s, params("running")).Outcome, semel.BeginBusy)
	})

	t.Run("what is expired goes before what is not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, memstore.Config{MaxRecords: 3})
			run(t, s, "released", released)
			run(t, s, "done", done(""))
			short := done("")
			short.Retention = time.Second
			run(t, s, "short", short)
			time.Sleep(time.Second)
			begin(t, s, params("new"))
			wantStates(t, s, map[string]semel.State{
				"released": semel.StateReleased, "done": semel.StateDone, "short": semel.StateAbsent,
			})
		})
	})

	t.Run("released goes before done, since running it again harms nothing", func(t *testing.T) {
		t.Parallel()
		s := newStore(t, memstore.Config{MaxRecords: 2})
		run(t, s, "done", done(""))
		run(t, s, "released", released)
		begin(t, s, params("new"))
		wantStates(t, s, map[string]semel.State{"done": semel.StateDone, "released": semel.StateAbsent})
	})

	t.Run("a raised generation is remembered though its record is pushed out", func(t *testing.T) {
		t.Parallel()
		s := newStore(t, memstore.Config{MaxRecords: 2})
		run(t, s, "moved", unknown)
		rec, _ := s.Get(t.Context(), "scope", "moved")
		p := params("moved")
		p.Force = &semel.Force{Attempt: rec.Attempt, Token: rec.Token}
		next := semel.NewOperationID("memstore", "scope", "moved", 1)
		settling := begin(t, s, p).Record
		_, err := s.Finish(t.Context(), settling.Claim(), semel.FinishParams{
			To: semel.StateReleased, Retention: retention, Settlement: &semel.Settlement{StartOver: next},
		})
		assert.NoError(t, err)
		run(t, s, "other", done(""))
		begin(t, s, params("new"))
		wantStates(t, s, map[string]semel.State{"moved": semel.StateAbsent, "other": semel.StateAbsent})
		rec, _ = s.Get(t.Context(), "scope", "moved")
		assert.Equal(t, rec.Generation, 1, "generation")
		assert.Equal(t, rec.OperationID, next, "operation id")
	})

	t.Run("replies above the byte bound push out the oldest replies, not the newest", func(t *testing.T) {
		t.Parallel()
		s := newStore(t, memstore.Config{MaxReplyBytes: 10})
		run(t, s, "a", done("12345"))
		run(t, s, "b", done("12345"))
		wantStates(t, s, map[string]semel.State{"a": semel.StateDone, "b": semel.StateDone})
		run(t, s, "c", done("1"))
		wantStates(t, s, map[string]semel.State{"a": semel.StateAbsent, "b": semel.StateDone, "c": semel.StateDone})
		run(t, s, "huge", done("a reply of more than ten bytes"))
		wantStates(t, s, map[string]semel.State{"b": semel.StateAbsent, "c": semel.StateAbsent, "huge": semel.StateDone})
	})

	t.Run("the byte bound forgets replies as it forgets records", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, memstore.Config{MaxReplyBytes: 10})
			run(t, s, "a", done("1234567890"))
			time.Sleep(retention)
			n, err := s.Sweep(t.Context(), 10)
			assert.NoError(t, err)
			assert.Equal(t, n, 1, "swept")
			run(t, s, "b", done("12345"))
			run(t, s, "c", done("12345"))
			wantStates(t, s, map[string]semel.State{"b": semel.StateDone, "c": semel.StateDone})
		})
	})
}

func TestTheLogOfSettlementsIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, memstore.Config{})
	settle := func(key string) {
		run(t, s, key, semel.FinishParams{To: semel.StateUnknown})
		rec, err := s.Get(t.Context(), "scope", key)
		assert.NoError(t, err)
		p := params(key)
		p.Force = &semel.Force{Attempt: rec.Attempt, Token: rec.Token}
		end := semel.FinishParams{To: semel.StateReleased, Retention: retention, Settlement: &semel.Settlement{}}
		settling := begin(t, s, p).Record
		_, err = s.Finish(t.Context(), settling.Claim(), end)
		assert.NoError(t, err)
	}
	lines := func(key string) int {
		audits, err := s.Audits(t.Context(), "scope", key)
		assert.NoError(t, err)
		return len(audits)
	}
	settle("first")
	for range memstore.MaxAudits/2 - 1 {
		settle("key")
	}
	assert.Equal(t, lines("first"), 2, "lines of the first key among the latest MaxAudits")
	for range 2 * memstore.MaxAudits {
		settle("key")
	}
	assert.Equal(t, lines("first"), 0, "lines of the first key, long after")
	got := lines("key")
	assert.True(t, got >= memstore.MaxAudits && got <= 2*memstore.MaxAudits, "lines kept: %d", got)
}

func TestAHeaderIsSavedAsText(t *testing.T) {
	t.Parallel()
	s := newStore(t, memstore.Config{})
	p := params("key")
	begun := begin(t, s, p)
	claim := begun.Record.Claim()
	end := done("paid")
	end.Retention = retention
	end.Reply.Header = semel.Header{"Bad:Name": {"x"}}
	_, err := s.Finish(t.Context(), claim, end)
	assert.True(t, err != nil, "a name that cannot be saved was saved")
	wantStates(t, s, map[string]semel.State{"key": semel.StateRunning})

	end.Reply.Header = semel.Header{"Two": {"1", "2"}, "One": {"a\nb"}, "None": {}}
	_, err = s.Finish(t.Context(), claim, end)
	assert.NoError(t, err)
	end.Reply.Header["Two"][0] = "changed afterwards"
	rec, err := s.Get(t.Context(), "scope", "key")
	assert.NoError(t, err)
	assert.Equal(t, rec.Reply.Header, semel.Header{"Two": {"1", "2"}, "One": {"a b"}}, "as every store reads it back")
	p.Token = semel.NewToken()
	assert.Equal(t, begin(t, s, p).Record.Reply.Header, rec.Reply.Header)
}

func TestAllocations(t *testing.T) { // not parallel: it counts allocations
	s := newStore(t, memstore.Config{})
	reply := semel.Reply{
		Status: 201,
		Header: semel.Header{"Content-Type": {"application/json"}, "Location": {"/payments/1"}},
		Body:   make([]byte, 200),
	}
	const runs = 1000
	keys := make([]semel.BeginParams, 0, 4*runs)
	for i := range cap(keys) {
		keys = append(keys, params(fmt.Sprintf("key-%d", i)))
	}
	next := 0
	ctx := t.Context()
	claim := func() semel.Claim {
		res, _ := s.Begin(ctx, keys[next])
		next++
		return res.Record.Claim()
	}
	begun := testing.AllocsPerRun(runs, func() { claim() })
	both := testing.AllocsPerRun(runs, func() {
		_, _ = s.Finish(ctx, claim(), semel.FinishParams{To: semel.StateDone, KeepReply: true, Reply: reply, Retention: retention})
	})
	replayed := testing.AllocsPerRun(runs, func() {
		_, _ = s.Begin(ctx, semel.BeginParams{Scope: "scope", Key: keys[next-1].Key})
	})
	t.Logf("allocations: Begin of a new key %v, with Finish %v, a replay %v", begun, both, replayed)
	assert.True(t, begun <= 2, "Begin of a new key made %v allocations; the most is 2", begun)
	assert.True(t, both <= 4, "Begin and Finish made %v allocations; the most is 4", both)
	assert.True(t, replayed <= 4, "a replay made %v allocations; the most is 4", replayed)
}

func BenchmarkBeginFinish(b *testing.B) {
	reply := semel.Reply{Status: 201, Header: semel.Header{"Content-Type": {"application/json"}}, Body: make([]byte, 200)}
	s := newStore(b, memstore.Config{})
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := semel.BeginParams{Scope: "scope", Token: semel.NewToken(), Lease: time.Minute}
			p.Key = string(p.Token[:])
			res, err := s.Begin(ctx, p)
			if err != nil {
				b.Error(err)
			}
			_, _ = s.Finish(ctx, res.Record.Claim(), semel.FinishParams{To: semel.StateDone, KeepReply: true, Reply: reply, Retention: retention})
		}
	})
}

func BenchmarkReplay(b *testing.B) {
	s := newStore(b, memstore.Config{})
	run(b, s, "key", done("a reply"))
	ctx := b.Context()
	p := params("key")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if res, _ := s.Begin(ctx, p); res.Outcome != semel.BeginReplay {
				b.Errorf("got outcome %v, want a replay", res.Outcome)
			}
		}
	})
}
