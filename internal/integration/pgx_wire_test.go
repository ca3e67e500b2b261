package integration

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/pgxstore"
)

// What a relay does with the first COMMIT that it sees.
const (
	passAll int32 = iota
	loseRequest
	loseAnswer
)

// relay stands between a store and its server, and cuts a connection at its
// COMMIT, while those that are opened next are good: it reads the simple
// protocol, where a COMMIT is text. The cables of TestConnectionsThatAreCut
// cannot, which count bytes and treat all connections alike.
type relay struct {
	net.Listener

	server string
	cut    atomic.Int32
}

// newRelay returns the relay and the URL that leads through it.
func newRelay(t *testing.T, to string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(to)
	assert.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	r := &relay{Listener: l, server: u.Host}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // it may be closed.
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(client)
		}
	}()
	u.Host = l.Addr().String()
	return r, u.String()
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer server.Close()
	var drop atomic.Bool
	go func() {
		defer client.Close()
		defer server.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			if err != nil || drop.Load() {
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if how := r.cut.Load(); how != passAll && bytes.Contains(b[:n], []byte("COMMIT")) && r.cut.CompareAndSwap(how, passAll) {
			if how == loseRequest {
				return
			}
			drop.Store(true)
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

func TestPgxCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	eachTxMode(t, func(t *testing.T, mode semel.Mode) {
		t.Helper()
		t.Run("that took effect is found by its token", func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			r := s.relayed(t)
			res, err := runPgx(t, s, mode, func(ctx context.Context, _ *pgxstore.JoinedTx) semel.Completion {
				r.cut.Store(loseAnswer)
				return pgxPayOnce(ctx)
			})
			assert.NoError(t, err)
			assert.Equal(t, r.cut.Load(), passAll, "the relay has cut")
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, res.Reply, created.Reply, "reply")
			assert.Equal(t, s.payments(t), 1)
		})
		t.Run("that never arrived is no success, and the money is taken once in the end", func(t *testing.T) {
			t.Parallel()
			s := newPgx(t, pgxConfig{})
			r := s.relayed(t)
			res, err := runPgx(t, s, mode, func(ctx context.Context, _ *pgxstore.JoinedTx) semel.Completion {
				r.cut.Store(loseRequest)
				return pgxPayOnce(ctx)
			})
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, r.cut.Load(), passAll, "the relay has cut")
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
			again := func() semel.Result {
				res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("k", mode), pgxPayOnce)
				assert.NoError(t, err)
				return res
			}
			if mode == semel.Joined {
				assert.Equal(t, again().Outcome, semel.OutcomeInProgress, "a repeat while the lease lives")
				s.advance(t, 2*semel.DefaultLease)
			}
			// In atomic mode the server only has to notice that the client is gone.
			assert.Eventually(t, "a repeat runs", func() bool { return again().Outcome == semel.OutcomeExecuted })
			assert.Equal(t, again().Outcome, semel.OutcomeReplayed)
			assert.Equal(t, s.payments(t), 1)
		})
	})
}

// relayed opens the store again, through a relay.
func (s *pgxStore) relayed(t *testing.T) *relay {
	t.Helper()
	r, through := newRelay(t, s.url)
	var err error
	s.Store, err = pgxstore.Open(t.Context(), through+"&default_query_exec_mode=simple_protocol", pgxstore.Config{Hooks: pgxHooks})
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	return r
}

// trips counts what a store sends, a round trip each.
type trips struct{ n atomic.Int64 }

var (
	_ pgx.QueryTracer = (*trips)(nil)
	_ pgx.BatchTracer = (*trips)(nil)
)

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (c *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// during returns how many round trips f takes.
func (c *trips) during(f func()) int64 {
	before := c.n.Load()
	f()
	return c.n.Load() - before
}

func TestPgxRoundTrips(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	base, err := pgxpool.ParseConfig(s.url)
	assert.NoError(t, err)
	count := &trips{}
	base.ConnConfig.Tracer = count
	s.Store, err = pgxstore.New(t.Context(), base, pgxstore.Config{Hooks: pgxHooks})
	assert.NoError(t, err)
	t.Cleanup(s.Close)
	g := newGuard(t, s, semel.Config{})
	run := func(key string, mode semel.Mode, work func(context.Context) semel.Completion, want semel.Outcome) func() {
		return func() {
			res, err := g.Run(t.Context(), pgxCall(key, mode), work)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, want)
		}
	}
	// A business transaction alone is BEGIN, the payment and COMMIT.
	for _, c := range []struct {
		name  string
		mode  semel.Mode
		work  func(context.Context) semel.Completion
		trips int64
	}{
		{"leased: claim, finish", semel.Leased, notPaying, 2},
		{"joined without a transaction: claim, finish", semel.Joined, notPaying, 2},
		{"joined: claim, begin, pay, finish with commit", semel.Joined, pgxPayOnce, 4},
		{"atomic: read, begin with claim, pay, finish with commit", semel.Atomic, pgxPayOnce, 4},
	} {
		assert.Equal(t, count.during(run(c.name, c.mode, c.work, semel.OutcomeExecuted)), c.trips, c.name)
		before := s.writes(t)
		assert.Equal(t, count.during(run(c.name, c.mode, c.work, semel.OutcomeReplayed)), 1, c.name, "replayed")
		assert.Equal(t, s.writes(t), before, "writes of a replay")
	}
	assert.Equal(t, s.number(t, "SELECT count(*) FROM semel_records WHERE xmax <> 0"), 0, "rows that a replay has locked")
}
