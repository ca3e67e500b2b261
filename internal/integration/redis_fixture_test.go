package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/storetest"
)

// redisShift is where the tests keep by how much a store's clock was moved.
const redisShift = "shift"

// redisBuckets is how many parts a store has, each with a clock of its own.
const redisBuckets = 256

// The ways to keep keys in Redis, each of which the contract is held to.
var redisWays = map[string]func(t testing.TB) (url string){
	"one server": func(t testing.TB) string { t.Helper(); return services.SharedRedis(t).URL() },
	"a cluster":  func(t testing.TB) string { t.Helper(); return clusterURL(services.SharedRedisCluster(t)) },
}

func clusterURL(c *services.RedisCluster) string {
	addrs := c.Addrs()
	return "redis-cluster://" + addrs[0] + "?" + url.Values{"addr": addrs[1:]}.Encode()
}

// redisStore is a store with what a test wants to know about it.
type redisStore struct {
	*redisstore.Store

	url, prefix string
	client      rueidis.Client
	gate        *gate
	events      redisEvents
}

// redisStores numbers the stores of this process: each has a prefix, and so
// keys, of its own.
var redisStores atomic.Int64

// newRedis returns a new store on the server or the cluster at a URL.
func newRedis(t testing.TB, at string) *redisStore {
	t.Helper()
	return redisAt(t, at, fmt.Sprintf("test-%d", redisStores.Add(1)))
}

// redisAt returns the store with a prefix.
func redisAt(t testing.TB, at, prefix string) *redisStore {
	t.Helper()
	s := &redisStore{url: at, prefix: prefix, gate: &gate{}}
	s.client = redisClient(t, at, s.gate)
	var err error
	s.Store, err = redisstore.New(t.Context(), s.client, s.config())
	assert.NoError(t, err)
	return s
}

func (s *redisStore) config() redisstore.Config {
	return redisstore.Config{Prefix: s.prefix, AcceptLoss: true, Logger: unheard, Hooks: testhook.Hooks{ClockShift: redisShift}}
}

// redisClient returns a client whose connections g can hold up.
func redisClient(t testing.TB, at string, g *gate) rueidis.Client {
	t.Helper()
	client, err := newRedisClient(at, g)
	assert.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func newRedisClient(at string, g *gate) (rueidis.Client, error) {
	single := !strings.HasPrefix(at, "redis-cluster:")
	opts, err := rueidis.ParseURL(strings.Replace(at, "redis-cluster:", "redis:", 1))
	if err != nil {
		return nil, err
	}
	opts.ForceSingleClient, opts.DisableCache, opts.DisableRetry = single, true, true
	opts.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		return &gatedConn{Conn: conn, gate: g}, err
	}
	return rueidis.NewClient(opts)
}

// gate holds up what is sent, as a queue before the server would, or loses what
// comes back.
type gate struct {
	mu        sync.RWMutex
	passed    atomic.Int64 // how often something was sent
	cut       atomic.Bool  // the next answer is lost, and the connection with it
	cutSecond atomic.Bool  // the one after it is
}

type gatedConn struct {
	net.Conn

	gate *gate
}

// Write sends b when the gate is open.
func (c *gatedConn) Write(b []byte) (int, error) {
	c.gate.mu.RLock()
	defer c.gate.mu.RUnlock()
	defer c.gate.passed.Add(1)
	return c.Conn.Write(b)
}

// Read takes an answer, if it is not to be lost.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.gate.cut.Swap(c.gate.cutSecond.Swap(false)) {
		return 0, errors.Join(errCut, c.Close())
	}
	return n, err
}

var errCut = errors.New("the connection was cut")

// stall closes the gate.
func (s *redisStore) stall() (resume func()) {
	s.gate.mu.Lock()
	return s.gate.mu.Unlock
}

// redisAdmins are the tests' own clients, past every gate.
var redisAdmins sync.Map // of URLs

func (s *redisStore) admin(t testing.TB) rueidis.Client {
	t.Helper()
	if client, ok := redisAdmins.Load(s.url); ok {
		return client.(rueidis.Client)
	}
	opts, err := rueidis.ParseURL(strings.Replace(s.url, "redis-cluster:", "redis:", 1))
	assert.NoError(t, err)
	opts.DisableCache = true
	client, err := rueidis.NewClient(opts)
	assert.NoError(t, err)
	other, loaded := redisAdmins.LoadOrStore(s.url, client)
	if loaded {
		client.Close()
	}
	return other.(rueidis.Client)
}

// advance moves the store's clock, for whoever opens the store.
func (s *redisStore) advance(t testing.TB, d time.Duration) {
	t.Helper()
	admin := s.admin(t)
	var all rueidis.Commands
	for i := range redisBuckets {
		name := fmt.Sprintf("{%s:%02x}:%s", s.prefix, i, redisShift)
		all = append(all, admin.B().Incrby().Key(name).Increment(d.Microseconds()).Build())
	}
	for _, res := range admin.DoMulti(t.Context(), all...) {
		assert.NoError(t, res.Error())
	}
}

// redisEvents counts what the servers say has changed.
type redisEvents struct {
	once    sync.Once
	masters []rueidis.Client
	changes atomic.Int64
	seen    chan redisMark
}

// redisMark is a mark as one master's listener has seen it: in a cluster all of
// them do.
type redisMark struct {
	master int
	mark   string
}

// writes returns how often a key of the store's was changed since the first
// call: the servers say so as they change it. A mark that was published after
// it comes after it.
func (s *redisStore) writes(t testing.TB) int64 {
	t.Helper()
	e := &s.events
	e.once.Do(func() { e.watch(t, s) })
	for i, node := range e.masters {
		e.await(t, node, redisMark{i, fmt.Sprintf("%s/%d", s.prefix, time.Now().UnixNano())})
	}
	return e.changes.Load()
}

func (e *redisEvents) watch(t testing.TB, s *redisStore) {
	t.Helper()
	e.seen = make(chan redisMark, 1000)
	for _, node := range s.admin(t).Nodes() {
		role, err := node.Do(t.Context(), node.B().Role().Build()).ToArray()
		assert.NoError(t, err)
		if name, err := role[0].ToString(); err != nil || name != "master" {
			continue
		}
		assert.NoError(t, node.Do(t.Context(), node.B().ConfigSet().ParameterValue().ParameterValue("notify-keyspace-events", "KA").Build()).Error())
		master := len(e.masters)
		e.masters = append(e.masters, node)
		go node.Receive(t.Context(), node.B().Psubscribe().Pattern("__keyspace@0__:{"+s.prefix+":*", s.prefix+"/*").Build(), func(m rueidis.PubSubMessage) { //nolint:errcheck // it ends with the test.
			if strings.HasPrefix(m.Channel, "__keyspace") {
				e.changes.Add(1)
				return
			}
			e.seen <- redisMark{master, m.Channel}
		})
	}
}

// await publishes a mark on a node until it is seen: at first nobody listens
// yet.
func (e *redisEvents) await(t testing.TB, node rueidis.Client, mark redisMark) {
	t.Helper()
	assert.Eventually(t, "a published mark is seen", func() bool {
		assert.NoError(t, node.Do(t.Context(), node.B().Publish().Channel(mark.mark).Message("").Build()).Error())
		for {
			select {
			case seen := <-e.seen:
				if seen == mark {
					return true
				}
			case <-time.After(20 * time.Millisecond):
				return false
			}
		}
	})
}

// redisWorker is a process that shares a store with the contract's tests. Its
// clock is the server's.
func redisWorker() error {
	s, err := redisstore.Open(context.Background(), os.Getenv(pathVariable), redisstore.Config{
		Prefix: os.Getenv(prefixVariable), Logger: unheard, Hooks: testhook.Hooks{ClockShift: redisShift},
	})
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // the process ends.
	return storetest.Worker{Store: s}.Serve(os.Stdin, os.Stdout)
}

const prefixVariable = "SEMEL_INTEGRATION_PREFIX"
