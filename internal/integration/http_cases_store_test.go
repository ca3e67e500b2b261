package integration

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
	"github.com/semel-dev/semel/sqlstore"
)

// outage is a way in which a store does not answer until the function is
// called that begin returns.
type outage struct {
	name  string
	begin func(*testing.T, *shop) (end func())
	// reads says that a saved reply can still be read.
	reads bool
	// claims says that a key may be claimed and nobody told of it.
	claims bool
}

var sqliteOutages = []outage{
	{"another process holds the write lock", lockedByAnother, true, false},
	{"the business holds the only writer", holdingTheWriter, true, false},
	{"the business holds every reader", holdingTheReaders, false, false},
}

var networkOutages = []outage{
	{"every connection is reset", overBad(reset(asking), reset(answering)), false, false},
	{"requests go nowhere", overBad(swallow(asking)), false, false},
	{"no answer comes", overBad(swallow(answering)), false, true},
}

func (on shopWay) outages() []outage {
	if on.kind == onSQLite {
		return sqliteOutages
	}
	return networkOutages
}

func overBad(toxics ...toxic) func(*testing.T, *shop) func() {
	return func(t *testing.T, s *shop) func() {
		t.Helper()
		s.cable.spoil(t, toxics...)
		return s.cable.heal
	}
}

func lockedByAnother(t *testing.T, s *shop) (end func()) {
	t.Helper()
	p := stopped(t, s.sqlite(), inTx)
	return func() { p.kill(t) }
}

func holdingTheWriter(t *testing.T, s *shop) (end func()) {
	t.Helper()
	tx, err := s.sqlite().handles.Write.BeginTx(context.Background(), nil)
	assert.NoError(t, err)
	return func() { assert.NoError(t, tx.Rollback()) }
}

func holdingTheReaders(t *testing.T, s *shop) (end func()) {
	t.Helper()
	var held []*sql.Conn
	for range s.sqlite().handles.Read.Stats().MaxOpenConnections {
		conn, err := s.sqlite().handles.Read.Conn(context.Background())
		assert.NoError(t, err)
		held = append(held, conn)
	}
	return func() {
		for _, conn := range held {
			assert.NoError(t, conn.Close())
		}
	}
}

// down is a shop whose store does not answer.
type down struct {
	*shop

	outage

	name    string
	srv     server
	end     func()
	ran     unprotected
	pending map[string]<-chan answer // by what they ask for
}

// unprotected counts the requests that ran without a record.
type unprotected struct{ atomic.Int64 }

var _ semel.Observer = (*unprotected)(nil)

// Observe counts e.
func (u *unprotected) Observe(_ context.Context, e semel.Event) {
	if e.Kind == semel.EventRequest && e.Outcome == "unprotected" {
		u.Add(1)
	}
}

// goDown opens a shop, and then takes its store away.
func goDown(t *testing.T, on shopWay, o outage) *down {
	t.Helper()
	d := &down{outage: o, name: on.String() + ", " + o.name, pending: map[string]<-chan answer{}}
	set := shopSettings{guard: semel.Config{Observer: &d.ran}}
	if on.kind.server == nil {
		d.shop = newShop(t, on, set)
	} else {
		by := newCable(t, on.kind.server(t))
		d.shop = newShopOn(t, on.kind.empty(on.whole, t).again(t, by), on, set)
		d.cable = by
	}
	served := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") }
	mux := http.NewServeMux()
	mux.Handle("/", d.protect(t, semelhttp.Route{}, d.created(t)))
	mux.Handle("/optional", d.protect(t, semelhttp.Route{Name: "optional", KeyOptional: true}, served))
	if on.mode == semel.Leased {
		mux.Handle("/open", d.protect(t, semelhttp.Route{Name: "open", FailOpen: true}, served))
	}
	d.srv = serve(t, overHTTP1, mux)
	assert.Equal(t, send(t, d.srv, ask{}.keyed("K0")).told(), executed, d.name)
	d.end = o.begin(t, d.shop)
	return d
}

// ask sends o once, and wants an answer although the store gives none.
func (d *down) ask(t *testing.T, name string, o ask) {
	t.Helper()
	got := make(chan answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*semel.DefaultStoreTimeout)
		defer cancel()
		a, err := try(ctx, d.srv, o)
		if err != nil {
			t.Errorf("%s: %s: %v", d.name, name, err)
			a.Response = &http.Response{}
		}
		got <- a
	}()
	d.pending[name] = got
}

// storeDown takes all stores away at once, since each makes its clients wait
// for some seconds.
func storeDown(t *testing.T, ways []shopWay) {
	t.Helper()
	var shops []*down
	for _, on := range ways {
		for _, o := range on.outages() {
			d := goDown(t, on, o)
			for i := range 2 {
				d.ask(t, fmt.Sprint("key ", i), ask{})
			}
			d.ask(t, "no key", ask{target: "/optional"}.with("Idempotency-Key"))
			if o.reads {
				d.ask(t, "saved", ask{}.keyed("K0"))
			}
			if on.mode == semel.Leased {
				d.ask(t, "open", ask{target: "/open"}.keyed("K3"))
			}
			shops = append(shops, d)
		}
	}
	for _, d := range shops {
		d.check(t)
		d.end()
		first := send(t, d.srv, ask{})
		if d.claims && first.told() == "409 in-progress" {
			d.advance(t, semel.DefaultLease+time.Second)
			first = send(t, d.srv, ask{})
		}
		assert.Equal(t, first.told(), executed, "%s: when it is over", d.name)
		assert.Equal(t, send(t, d.srv, ask{}).told(), replayed, "%s: when it is over", d.name)
		d.sold(t, 2)
	}
}

// check takes the answers while the outage lasts.
func (d *down) check(t *testing.T) {
	t.Helper()
	served := int64(0)
	for name, pending := range d.pending {
		got := <-pending
		what := d.name + ": " + name
		switch name {
		case "no key", "open":
			served++
			assert.Equal(t, got.told(), "200 unprotected", what)
			assert.Equal(t, got.text, "served", what)
		case "saved":
			assert.Equal(t, got.told(), replayed, what)
		default:
			assert.Equal(t, got.told(), "503 released", what)
			assert.Contains(t, got.text, `"code":"store-unavailable","retry":true`, what)
			assert.True(t, got.Header.Get("Retry-After") != "", "%s: it says when to come again", what)
		}
	}
	assert.Equal(t, d.ran.Load(), served, d.name+": requests that were counted as unprotected")
	assert.Equal(t, d.runs.Load(), int64(1), d.name+": runs, K0's alone")
}

func storeCases(all *httpCases) {
	all.together = append(all.together, togetherCase{"store-down: Nothing runs that has a key, but where a route chose so; the rest is served", storeDown})
	fullCases(all)
}

// fill makes the database as large as it may be. In joined mode q is the
// transaction, which has the only connection that writes.
func fill(ctx context.Context, t testing.TB, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) {
	t.Helper()
	var pages, most int
	assert.NoError(t, q.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages))
	assert.NoError(t, q.QueryRowContext(ctx, fmt.Sprint("PRAGMA max_page_count = ", pages)).Scan(&most))
	assert.Equal(t, most, pages)
}

func (s *shop) sqlite() *sqliteStore {
	return s.shopStore.(sqliteShop).sqliteStore //nolint:forcetypeassert // the cases that ask are SQLite's.
}

func (s *shop) makeRoom(t testing.TB) {
	t.Helper()
	_, err := s.sqlite().handles.Write.Exec("PRAGMA max_page_count = 1000000")
	assert.NoError(t, err)
}

func fullCases(all *httpCases) {
	all.addBut(unlessSQLite, "store-down: A full disk refuses new keys, and replays old ones", func(t *testing.T, on shopWay) {
		// A scope that is longer than an entry of an index: each claim needs a
		// page of its own.
		long := strings.Repeat("c", semel.MaxScopeLength)
		s := newShop(t, on, shopSettings{caller: func(*http.Request) (string, error) { return long, nil }})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		assert.Equal(t, send(t, srv, ask{}).told(), executed)
		fill(t.Context(), t, s.sqlite().handles.Write)
		for range 2 {
			got, err := try(t.Context(), srv, ask{}.keyed("K2"))
			assert.NoError(t, err)
			assert.Equal(t, got.told(), "503 released")
			assert.Contains(t, got.text, `"code":"store-unavailable"`)
		}
		assert.Equal(t, send(t, srv, ask{}).told(), replayed)
		s.sold(t, 1)
		s.makeRoom(t)
		assert.Equal(t, send(t, srv, ask{}.keyed("K2")).told(), executed)
		s.sold(t, 2)
	})

	all.addBut(unlessSQLite, "store-down: A reply that a full disk cannot take is not shown", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{recovery: semel.Hold()})
		reply := strings.Repeat("x", 100_000)
		var filled bool
		srv := selling(t, s, overHTTP1, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			if !filled && on.mode == semel.Leased {
				fill(r.Context(), t, s.sqlite().handles.Write)
			} else if !filled {
				tx, err := sqlstore.Tx(r.Context())
				assert.NoError(t, err)
				fill(r.Context(), t, tx)
			}
			filled = true
			io.WriteString(w, reply)
		})
		got, err := try(t.Context(), srv, ask{})
		assert.NoError(t, err)
		if strings.Contains(got.text, "xx") {
			t.Fatalf("told %s with %d bytes of a reply that is not saved", got.told(), len(got.text))
		}
		s.makeRoom(t)
		if on.mode == semel.Joined { // the run is undone with its row
			assert.Equal(t, got.told(), "503 released")
			assert.Contains(t, got.text, `"code":"commit-refused"`)
			assert.Equal(t, len(s.rows(t)), 0, "rows")
			assert.Equal(t, send(t, srv, ask{}).told(), "200 executed")
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), "200 replayed")
			assert.True(t, again.text == reply, "the repeat has the whole reply")
			assert.Equal(t, len(s.rows(t)), 1, "rows")
			return
		}
		assert.Equal(t, got.told(), "503 unknown")
		assert.Contains(t, got.text, `"code":"store-unavailable"`)
		assert.Equal(t, send(t, srv, ask{}).told(), "409 in-progress", "while the lease lives")
		s.advance(t, semel.DefaultLease+time.Second)
		assert.Equal(t, send(t, srv, ask{}).told(), "409 unknown", "afterwards")
		s.sold(t, 1)
	})
}
