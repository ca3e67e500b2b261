package integration

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/redisstore"
)

func TestRedisStepThatArrivesLateDoesNothing(t *testing.T) {
	t.Parallel()
	s := newRedis(t, services.SharedRedis(t).URL())
	ended := claimed(t, s, "ended")
	resume := s.stall()
	const patience = 100 * time.Millisecond
	for _, step := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := s.Begin(ctx, beginFor("late")); return err },
		func(ctx context.Context) error {
			_, err := s.Finish(ctx, ended, semel.FinishParams{To: semel.StateReleased, Retention: time.Hour})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		assert.ErrorIs(t, step(ctx), semel.ErrStoreUnavailable)
		cancel()
	}
	before := s.gate.passed.Load()
	resume()
	assert.Eventually(t, "what was held up is on its way", func() bool { return s.gate.passed.Load() > before })
	// On the same connections, and so behind it.
	for range 20 {
		wantState(t, s, "late", semel.StateAbsent)
		rec, err := s.Get(t.Context(), ended.Scope, ended.Key)
		assert.NoError(t, err)
		assert.Equal(t, rec.State, semel.StateRunning)
	}
	claimed(t, s, "late")
}

// claimed begins a key that must be claimed.
func claimed(t testing.TB, s semel.Store, key string) semel.Claim {
	t.Helper()
	res, err := s.Begin(t.Context(), beginFor(key))
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.BeginClaimed)
	return res.Record.Claim()
}

func TestRedisAnswerThatIsLost(t *testing.T) {
	t.Parallel()
	t.Run("of Begin: sent again, it finds the claim that it has made", func(t *testing.T) {
		t.Parallel()
		s := newRedis(t, services.SharedRedis(t).URL())
		p := beginFor("k")
		s.gate.cut.Store(true)
		_, err := s.Begin(t.Context(), p)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		wantState(t, s, "k", semel.StateRunning)
		res, err := s.Begin(t.Context(), p)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.BeginClaimed)
		assert.Equal(t, res.Record.Attempt, 1, "attempt")
	})
	t.Run("of Finish: sent again, it is held", func(t *testing.T) {
		t.Parallel()
		s := newRedis(t, services.SharedRedis(t).URL())
		c := claimed(t, s, "k")
		p := semel.FinishParams{To: semel.StateDone, KeepReply: true, Reply: semel.Reply{Status: 201, Body: []byte("made")}, Retention: time.Hour}
		s.gate.cut.Store(true)
		_, err := s.Finish(t.Context(), c, p)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		wantState(t, s, "k", semel.StateDone)
		held, err := s.Finish(t.Context(), c, p)
		assert.NoError(t, err)
		assert.Equal(t, held, semel.Held{Status: semel.HeldYes, State: semel.StateDone})
	})
	t.Run("of a settlement: it is logged once", func(t *testing.T) {
		t.Parallel()
		s := newRedis(t, services.SharedRedis(t).URL())
		c := claimed(t, s, "k")
		p := semel.FinishParams{To: semel.StateDone, Retention: time.Hour, Settlement: &semel.Settlement{Audit: semel.Audit{Actor: "ops", Reason: "asked"}}}
		for _, cut := range []bool{true, false} {
			s.gate.cutSecond.Store(cut) // the first answer is the record
			_, err := s.Finish(t.Context(), c, p)
			assert.Equal(t, err != nil, cut, "whether the answer is lost: %v", err)
		}
		lines, err := s.Audits(t.Context(), c.Scope, c.Key)
		assert.NoError(t, err)
		assert.Equal(t, len(lines), 1, "lines of the audit log")
	})
}

func TestRedisServersThatRefuse(t *testing.T) {
	t.Parallel()
	server := services.NewRedis(t)
	s := openRedis(t, server.URL(), redisstore.Config{})
	do := func(command ...string) {
		t.Helper()
		_, err := server.Do(command...)
		assert.NoError(t, err)
	}
	claim := claimed(t, s, "running")
	wantFaults := func(why string) {
		t.Helper()
		_, err := s.Begin(t.Context(), beginFor("k"))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.True(t, strings.Contains(err.Error(), why), "the error %q says %s", err, why)
		_, err = s.Finish(t.Context(), claim, semel.FinishParams{To: semel.StateReleased, Retention: time.Hour})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	}

	do("SCRIPT", "FLUSH") // no fault: the scripts are sent again
	claimed(t, s, "after the scripts were forgotten")

	do("CONFIG", "SET", "maxmemory", "1")
	wantFaults("OOM")
	do("CONFIG", "SET", "maxmemory", "0")
	do("REPLICAOF", "127.0.0.1", "1")
	wantFaults("READONLY")
	do("REPLICAOF", "NO", "ONE")
	server.Kill()
	wantFaults("") // at first that the connection has ended, then that there is none
	assert.NoError(t, server.Start())
	wantState(t, s, "running", semel.StateRunning)
	wantState(t, s, "k", semel.StateAbsent)
	claimed(t, s, "k")
}

func TestRedisServersThatForget(t *testing.T) {
	t.Parallel()
	server := services.NewRedis(t)
	do := func(command ...string) {
		t.Helper()
		_, err := server.Do(command...)
		assert.NoError(t, err)
	}
	open := func(cfg redisstore.Config) (*redisstore.Store, error) {
		cfg.Logger = unheard
		return redisstore.Open(t.Context(), server.URL(), cfg)
	}
	class := func() semel.StoreClass {
		t.Helper()
		s, err := open(redisstore.Config{})
		assert.NoError(t, err)
		defer s.Close()
		return s.Class()
	}
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random"} {
		do("CONFIG", "SET", "maxmemory-policy", policy)
		_, err := open(redisstore.Config{AssumeNoEviction: true})
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.True(t, strings.Contains(err.Error(), policy), "the error names the policy: %v", err)
	}

	// Such a policy takes only what has a time to live: records have none.
	do("CONFIG", "SET", "maxmemory-policy", "volatile-random")
	s := openRedis(t, server.URL(), redisstore.Config{})
	g := newGuard(t, s, semel.Config{})
	b := newBank(true)
	for _, key := range []string{"a", "b", "c"} {
		_, err := g.Run(t.Context(), leased(key), b.charge)
		assert.NoError(t, err)
	}
	claimed(t, s, "running")
	fillUntilEvicting(t, server)
	wantState(t, s, "running", semel.StateRunning)
	for _, key := range []string{"a", "b", "c"} {
		wantState(t, s, key, semel.StateDone)
	}
	do("CONFIG", "SET", "maxmemory", "0")

	assert.Equal(t, class(), semel.DurableUnlessFailover, "class with appendfsync always")
	do("CONFIG", "SET", "appendfsync", "everysec")
	assert.Equal(t, class(), semel.BestEffort, "class with appendfsync everysec")
	do("CONFIG", "SET", "appendfsync", "always", "appendonly", "no")
	assert.Equal(t, class(), semel.BestEffort, "class without an append-only file")
	do("CONFIG", "SET", "appendonly", "yes")

	do("ACL", "SETUSER", "app", "on", ">secret", "~semel*", "~{semel*", "&*", "+@all", "-info", "-config")
	url := strings.Replace(server.URL(), "redis://", "redis://app:secret@", 1)
	_, err := redisstore.Open(t.Context(), url, redisstore.Config{Logger: unheard})
	assert.ErrorIs(t, err, semel.ErrConfig)
	assert.True(t, strings.Contains(err.Error(), "AssumeNoEviction"), "the error names the setting: %v", err)
	silent := openRedis(t, url, redisstore.Config{AssumeNoEviction: true})
	assert.Equal(t, silent.Class(), semel.BestEffort, "class of a server that does not tell")
	claimed(t, silent, "k")
}

// fillUntilEvicting adds values with a time to live until the server has taken
// some away.
func fillUntilEvicting(t testing.TB, server *services.Redis) {
	t.Helper()
	used, err := server.Do("INFO", "memory")
	assert.NoError(t, err)
	_, used, _ = strings.Cut(used, "used_memory:")
	used, _, _ = strings.Cut(used, "\r\n")
	_, err = server.Do("CONFIG", "SET", "maxmemory", used+"0") // ten times as much
	assert.NoError(t, err)
	const fill = `for i = 1, 1000 do redis.call('SET', KEYS[1] .. i .. '-' .. ARGV[1], string.rep('x', 1000), 'EX', 1000) end`
	assert.Eventually(t, "the server evicts", func() bool {
		_, err := server.Do("EVAL", fill, "1", "fill", time.Now().String())
		assert.NoError(t, err)
		stats, err := server.Do("INFO", "stats")
		assert.NoError(t, err)
		return !strings.Contains(stats, "evicted_keys:0\r\n")
	})
}

func TestRedisCannotBeReached(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"redis://", "redis-cluster://"} {
		_, err := redisstore.Open(t.Context(), scheme+"127.0.0.1:1", redisstore.Config{Logger: unheard})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable, scheme)
		assert.True(t, !errors.Is(err, semel.ErrConfig), "%s: no setting is wrong", scheme)
	}
}

// TestRedisRoundTrips counts what the server is asked: each step is one call.
func TestRedisRoundTrips(t *testing.T) {
	t.Parallel()
	server := services.NewRedis(t)
	s := openRedis(t, server.URL(), redisstore.Config{})
	calls := func() int {
		stats, err := server.Do("INFO", "commandstats")
		assert.NoError(t, err)
		n := 0
		for line := range strings.Lines(stats) {
			if name, rest, _ := strings.Cut(line, ":calls="); strings.HasPrefix(name, "cmdstat_eval") {
				count, _, _ := strings.Cut(rest, ",")
				c, err := strconv.Atoi(count)
				assert.NoError(t, err)
				n += c
			}
		}
		return n
	}
	var claim semel.Claim
	begin := func(key string) semel.BeginOutcome {
		res, err := s.Begin(t.Context(), beginFor(key))
		assert.NoError(t, err)
		if res.Outcome == semel.BeginClaimed {
			claim = res.Record.Claim()
		}
		return res.Outcome
	}
	finish := func(c semel.Claim, to semel.State) semel.HeldStatus {
		held, err := s.Finish(t.Context(), c, semel.FinishParams{To: to, Retention: time.Hour})
		assert.NoError(t, err)
		return held.Status
	}
	begin("to have the script loaded")
	for _, step := range []struct {
		name string
		do   func() bool
		want int
	}{
		{"a claim of a new key", func() bool { return begin("k") == semel.BeginClaimed }, 1},
		{"a repeat while it runs", func() bool { return begin("k") == semel.BeginBusy }, 1},
		{"a renewal", func() bool {
			held, err := s.Extend(t.Context(), claim, semel.ExtendParams{Lease: time.Minute})
			return err == nil && held.Status == semel.HeldYes
		}, 1},
		{"an end", func() bool { return finish(claim, semel.StateReleased) == semel.HeldYes }, 1},
		{"the same end again", func() bool { return finish(claim, semel.StateReleased) == semel.HeldYes }, 1},
		{"another end", func() bool { return finish(claim, semel.StateDone) == semel.HeldFinal }, 1},
		{"a claim of a released key", func() bool { return begin("k") == semel.BeginClaimed }, 2},
		{"the end of its work", func() bool { return finish(claim, semel.StateDone) == semel.HeldYes }, 1},
		{"a replay", func() bool { return begin("k") == semel.BeginReplay }, 1},
		{"an end without a claim", func() bool {
			return finish(semel.Claim{Scope: claim.Scope, Key: "k", Attempt: 1}, semel.StateDone) == semel.HeldSuperseded
		}, 1},
		{"a look", func() bool { _, err := s.Get(t.Context(), claim.Scope, "k"); return err == nil }, 1},
	} {
		before := calls()
		assert.True(t, step.do(), "%s is what it says", step.name)
		assert.Equal(t, calls()-before, step.want, "calls for "+step.name)
	}
}

func TestRedisSweepDropsWhatHasOnlyAPlaceInTheIndex(t *testing.T) {
	t.Parallel()
	s := newRedis(t, services.SharedRedis(t).URL())
	admin := s.admin(t)
	keys := func(pattern string) []string {
		t.Helper()
		all, err := admin.Do(t.Context(), admin.B().Keys().Pattern("{"+s.prefix+":*"+pattern).Build()).AsStrSlice()
		assert.NoError(t, err)
		return all
	}
	for _, key := range []string{"a", "b"} {
		_, err := s.Finish(t.Context(), claimed(t, s, key), semel.FinishParams{To: semel.StateReleased, Retention: time.Hour})
		assert.NoError(t, err)
	}
	records := keys(":record:*")
	assert.Equal(t, len(records), 2, "records")
	assert.NoError(t, admin.Do(t.Context(), admin.B().Del().Key(records[0]).Build()).Error())
	s.advance(t, 2*time.Hour)
	n, err := s.Sweep(t.Context(), 10)
	assert.NoError(t, err)
	assert.Equal(t, n, 1, "records swept")
	assert.Equal(t, len(keys(":record:*"))+len(keys(":index")), 0, "records and places that are left")
}

func TestRedisPrefixesHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	url := services.SharedRedis(t).URL()
	one, other := newRedis(t, url), newRedis(t, url)
	claimed(t, one, "k")
	wantState(t, other, "k", semel.StateAbsent)
	claimed(t, other, "k")
}

// TestRedisRecordsHaveNoTimeToLive: the server removes nothing by itself.
func TestRedisRecordsHaveNoTimeToLive(t *testing.T) {
	t.Parallel()
	server := services.NewRedis(t)
	s := openRedis(t, server.URL(), redisstore.Config{})
	claimed(t, s, "running")
	for key, to := range map[string]semel.State{"done": semel.StateDone, "released": semel.StateReleased, "unknown": semel.StateUnknown} {
		_, err := s.Finish(t.Context(), claimed(t, s, key), semel.FinishParams{To: to, Retention: time.Hour})
		assert.NoError(t, err)
	}
	said, err := server.Do("INFO", "keyspace")
	assert.NoError(t, err)
	assert.True(t, strings.Contains(said, "keys=8,expires=0"), "four records, four places, none with a time to live: %s", said)
}
