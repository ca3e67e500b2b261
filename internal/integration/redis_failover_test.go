package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/redisstore"
)

// bank is what the work calls. It takes the operation id as its idempotency
// key, and heeds it or not.
type bank struct {
	heeds bool

	mu      sync.Mutex
	charges map[semel.OperationID]int
}

func newBank(heeds bool) *bank { return &bank{heeds: heeds, charges: map[semel.OperationID]int{}} }

// charge is the work of a call: it charges once for each operation, if the bank
// heeds its id, and else each time.
func (b *bank) charge(ctx context.Context) semel.Completion {
	op, _ := semel.OperationFrom(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charges[op.ID] == 0 || !b.heeds {
		b.charges[op.ID]++
	}
	return semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Status: 201, Body: []byte("charged " + op.ID.String())}}
}

// of returns how often a key's operation was charged.
func (b *bank) of(scope, key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.charges[semel.NewOperationID(semel.DefaultService, scope, key, 0)]
}

// ids returns how many operations were charged.
func (b *bank) ids() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.charges)
}

// leased is a call in leased mode.
func leased(key string) semel.Call {
	return semel.Call{Scope: "payments:c_1", Key: key, Fingerprint: semel.FingerprintOf([]byte(key))}
}

// failover is a master and its replica that has just been promoted, while the
// master still answers: who has not heard of it still claims there.
type failover struct {
	master   *services.Redis
	old, new *redisStore
}

func newFailover(t *testing.T, acceptLoss bool) *failover {
	t.Helper()
	f := &failover{master: services.NewRedis(t)}
	replica := services.NewReplica(t, f.master)
	f.old = openRedis(t, f.master.URL(), redisstore.Config{AcceptLoss: acceptLoss})
	_, err := replica.Do("REPLICAOF", "NO", "ONE")
	assert.NoError(t, err)
	f.new = openRedis(t, replica.URL(), redisstore.Config{AcceptLoss: acceptLoss})
	return f
}

// openRedis opens a store as its users do.
func openRedis(t testing.TB, url string, cfg redisstore.Config) *redisStore {
	t.Helper()
	cfg.Logger = unheard
	s, err := redisstore.Open(t.Context(), url, cfg)
	assert.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return &redisStore{Store: s, url: url}
}

func TestRedisFailover(t *testing.T) {
	t.Parallel()
	t.Run("under Resume a lost reply is made again, under the same operation id, and a bank that heeds it charges once", func(t *testing.T) {
		t.Parallel()
		f, b := newFailover(t, false), newBank(true)
		first, err := newGuard(t, f.old, semel.Config{}).Run(t.Context(), leased("k"), b.charge)
		assert.NoError(t, err)
		assert.Equal(t, first.Outcome, semel.OutcomeExecuted)
		f.master.Kill()
		wantState(t, f.new, "k", semel.StateAbsent) // acknowledged, and lost
		again, err := newGuard(t, f.new, semel.Config{}).Run(t.Context(), leased("k"), b.charge)
		assert.NoError(t, err)
		assert.Equal(t, again.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, string(again.Reply.Body), string(first.Reply.Body), "reply")
		assert.Equal(t, b.of("payments:c_1", "k"), 1, "charges")
		assert.Equal(t, b.ids(), 1, "operations that the bank has seen")
	})
	t.Run("under Resume a lost claim is made again, also while its work runs", func(t *testing.T) {
		t.Parallel()
		f, b := newFailover(t, false), newBank(true)
		res, err := newGuard(t, f.old, semel.Config{}).Run(t.Context(), leased("k"), func(ctx context.Context) semel.Completion {
			f.master.Kill() // nothing that follows can be saved there
			wantState(t, f.new, "k", semel.StateAbsent)
			_, err := newGuard(t, f.new, semel.Config{}).Run(t.Context(), leased("k"), b.charge)
			assert.NoError(t, err)
			return b.charge(ctx)
		})
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.Equal(t, len(res.Reply.Body), 0, "length of a reply that could not be saved")
		assert.Equal(t, b.of("payments:c_1", "k"), 1, "charges")
		wantState(t, f.new, "k", semel.StateDone)
	})
	t.Run("under Hold the work runs twice, so it is refused unless that is accepted", func(t *testing.T) {
		t.Parallel()
		f, b := newFailover(t, true), newBank(false)
		for _, store := range []semel.Store{f.old, f.new} {
			g, err := semel.New(store, semel.Hold(), semel.Config{Logger: unheard})
			assert.NoError(t, err)
			res, err := g.Run(t.Context(), leased("k"), b.charge)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		}
		assert.Equal(t, b.of("payments:c_1", "k"), 2, "charges, at a bank that does not heed the id")

		_, err := semel.New(openRedis(t, services.SharedRedis(t).URL(), redisstore.Config{}), semel.Hold(), semel.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig)
	})
}

func wantState(t testing.TB, s semel.Store, key string, want semel.State) {
	t.Helper()
	rec, err := s.Get(t.Context(), leased(key).Scope, key)
	assert.NoError(t, err)
	assert.Equal(t, rec.State, want, "state of %q", key)
}

// redisLoad sends calls from several goroutines, each a key after the other and
// each key until it is answered, until stopped.
type redisLoad struct {
	stop chan struct{}
	all  sync.WaitGroup

	mu       sync.Mutex
	answered []string
}

const redisCallers = 16

func loadRedis(t *testing.T, g *semel.Guard, b *bank) *redisLoad {
	t.Helper()
	l := &redisLoad{stop: make(chan struct{})}
	for caller := range redisCallers {
		l.all.Go(func() {
			for i := 0; ; i++ {
				if !l.send(t, g, b, fmt.Sprintf("%d-%d", caller, i)) {
					return
				}
			}
		})
	}
	return l
}

// send sends one call until it is answered, or unknown for good, and reports
// whether there is to be another.
func (l *redisLoad) send(t *testing.T, g *semel.Guard, b *bank, key string) bool {
	for {
		select {
		case <-l.stop:
			return false
		default:
		}
		res, err := g.Run(t.Context(), leased(key), b.charge)
		switch {
		case err != nil:
		case res.Done():
			if !strings.HasPrefix(string(res.Reply.Body), "charged ") {
				t.Errorf("got the reply %q for %s", res.Reply.Body, key)
			}
			l.mu.Lock()
			l.answered = append(l.answered, key)
			l.mu.Unlock()
			return true
		case res.Outcome == semel.OutcomeUnknown && g.Rules().Recovery == semel.Hold():
			return true
		}
		time.Sleep(time.Millisecond) // as long as the server is away
	}
}

// moreAnswered waits until more calls are answered.
func (l *redisLoad) moreAnswered(t testing.TB, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.answered)
	}
	want := count() + n
	assert.Eventually(t, "more calls are answered", func() bool { return count() >= want })
}

// end stops the callers and returns the keys that were answered.
func (l *redisLoad) end() []string {
	close(l.stop)
	l.all.Wait()
	return l.answered
}

func TestRedisKilledUnderLoadLosesNothingThatWasAnswered(t *testing.T) {
	t.Parallel()
	for _, recovery := range []semel.Recovery{semel.Hold(), semel.Resume(semel.Forever)} {
		t.Run("under "+recovery.String(), func(t *testing.T) {
			t.Parallel()
			server := services.NewRedis(t)
			store := openRedis(t, server.URL(), redisstore.Config{AcceptLoss: true})
			assert.Equal(t, store.Class(), semel.DurableUnlessFailover)
			g, err := semel.New(store, recovery, semel.Config{Logger: unheard, Lease: semel.MinLease})
			assert.NoError(t, err)
			b := newBank(recovery != semel.Hold())
			load := loadRedis(t, g, b)
			for range 5 {
				load.moreAnswered(t, 100)
				server.Kill()
				assert.NoError(t, server.Start())
			}
			load.moreAnswered(t, 100)
			for _, key := range load.end() {
				wantState(t, store, key, semel.StateDone)
				assert.Equal(t, b.of(leased(key).Scope, key), 1, "charges for the answered %q", key)
			}
			for id, n := range b.charges {
				assert.Equal(t, n, 1, "charges of %v, answered or not", id)
			}
		})
	}
}

func TestRedisClusterFailover(t *testing.T) {
	t.Parallel()
	t.Run("under Resume every call is answered in the end, and charged once", func(t *testing.T) {
		t.Parallel()
		cluster := services.NewRedisCluster(t)
		store := openRedis(t, clusterURL(cluster), redisstore.Config{})
		g, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{Logger: unheard, Lease: semel.MinLease})
		assert.NoError(t, err)
		b := newBank(true)
		load := loadRedis(t, g, b)
		load.moreAnswered(t, 100)
		for _, node := range cluster.Nodes {
			role, err := node.Do("ROLE")
			assert.NoError(t, err)
			if strings.HasPrefix(role, "master") {
				node.Kill()
				break
			}
		}
		// The callers each come to a key of the lost third, and wait for it.
		load.moreAnswered(t, 20*redisCallers)
		answered := load.end()
		for _, key := range answered {
			assert.Equal(t, b.of(leased(key).Scope, key), 1, "charges for the answered %q", key)
		}
	})
}
