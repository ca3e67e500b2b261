package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// modes are the modes that a case runs in.
var modes = map[string]semel.Mode{"leased": semel.Leased, "joined": semel.Joined}

// inModes runs a case in both modes. The claim begins with the kind of fault.
func inModes(t *testing.T, claim string, test func(t *testing.T, mode semel.Mode)) {
	t.Helper()
	for name, mode := range modes {
		t.Run(claim+" ("+name+")", func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

// The faults that idempotency layers had in public, as an HTTP client of a
// service on SQLite would meet them.
func TestHTTPCasesOnSQLite(t *testing.T) {
	t.Parallel()
	claimCases(t)
	timeCases(t)
}

// blocking is the usual handler that says when it is inside, and goes on when
// goOn is closed.
func blocking(t testing.TB, s *shop) (h http.HandlerFunc, inside, goOn chan struct{}) {
	t.Helper()
	inside, goOn = make(chan struct{}, 1), make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		<-goOn
		s.created(t)(w, r)
	}, inside, goOn
}

func claimCases(t *testing.T) {
	t.Helper()
	inModes(t, "claim-not-released: After a panic the retry runs at once", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{})
		var died bool
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			if !died {
				died = true
				panic("out of paper") //nolint:forbidigo // that is the case.
			}
			s.created(t)(w, r)
		}))
		_, err := try(t.Context(), srv, ask{})
		assert.True(t, err != nil, "the first client sees a broken connection")
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		s.sold(t, 1)
	})

	inModes(t, "live-claim-stolen: A claim without a deadline holds for its lease", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{})
		<-inside
		assert.NoError(t, s.clock.Advance(semel.DefaultLease-5*time.Second))
		again := send(t, srv, ask{})
		assert.Equal(t, again.told(), "409 in-progress")
		close(goOn)
		assert.Equal(t, (<-first).told(), "201 executed")
		s.sold(t, 1)
	})

	inModes(t, "waiter: A duplicate does not wait, it is told to come again and then gets the first one's reply", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{})
		<-inside
		early := send(t, srv, ask{})
		assert.Equal(t, early.told(), "409 in-progress")
		assert.Contains(t, early.text, `"code":"in-progress","retry":true`)
		assert.True(t, early.Header.Get("Retry-After") != "", "it says when to come again")
		close(goOn)
		done := <-first
		late := send(t, srv, ask{})
		assert.Equal(t, late.told(), "201 replayed")
		assert.Equal(t, late.text, done.text)
		s.sold(t, 1)
	})

	inModes(t, "concurrent-claim: Of 64 clients of two servers on one file, one runs", concurrentClaim)

	inModes(t, "conflict-status: Who loses the race for the insert is told of the winner, and others are served", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		for i := range 10 {
			o := ask{}.keyed("K" + strconv.Itoa(i))
			resume := stall(t, s.sqliteStore)
			one, two := sending(t, srv, o), sending(t, srv, o)
			resume()
			got := map[string]int{(<-one).told(): 1}
			got[(<-two).told()]++
			assert.Equal(t, got["201 executed"], 1, "winners, of %v", got)
			assert.Equal(t, got["409 in-progress"]+got["201 replayed"], 1, "losers, of %v", got)
			assert.Equal(t, send(t, srv, o.keyed("other"+strconv.Itoa(i))).told(), "201 executed")
		}
		s.sold(t, 20)
	})

	inModes(t, "mismatch-check-bypass: Another request under the key is refused on every way to the record", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{})
		h, inside, goOn := blocking(t, s)
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
		first := sending(t, srv, ask{body: `{"amount":1}`})
		<-inside
		other := ask{body: `{"amount":2}`}
		assert.Equal(t, send(t, srv, other).told(), "422 key-reused", "while the first runs")
		close(goOn)
		<-first
		after := send(t, srv, other)
		assert.Equal(t, after.told(), "422 key-reused", "after its end")
		assert.Equal(t, after.Header.Get("Location"), "")

		resume := stall(t, s.sqliteStore)
		one, two := sending(t, srv, ask{body: `{"amount":1}`}.keyed("K2")), sending(t, srv, other.keyed("K2"))
		resume()
		got := map[string]int{(<-one).told(): 1}
		got[(<-two).told()]++
		assert.Equal(t, got, map[string]int{"201 executed": 1, "422 key-reused": 1}, "when both insert")
		s.sold(t, 2)
	})

	for _, proto := range []string{overHTTP1, overHTTP2} {
		inModes(t, "client-disconnect: What a client began that went away is saved, over "+proto, func(t *testing.T, mode semel.Mode) {
			s := newShop(t, mode, shopSettings{})
			goOn, inside, ended := make(chan struct{}), make(chan context.Context, 1), make(chan struct{}, 2)
			inner := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
				s.created(t)(w, r)
				<-goOn
				assert.NoError(t, r.Context().Err())
			})
			srv := serve(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- struct{}{} }()
				select {
				case inside <- r.Context():
				default:
				}
				inner.ServeHTTP(w, r)
			}))
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := try(ctx, srv, ask{body: `{"qty":1}`})
				gone <- err
			}()
			connection := <-inside
			assert.Eventually(t, "the handler runs", func() bool { return s.runs.Load() == 1 })
			leave()
			assert.ErrorIs(t, <-gone, context.Canceled)
			<-connection.Done()
			close(goOn)
			<-ended
			again := send(t, srv, ask{body: `{"qty":1}`})
			assert.Equal(t, again.told(), "201 replayed")
			assert.Equal(t, again.text, "{\"id\":1}\n")
			s.sold(t, 1)
		})
	}
}

func concurrentClaim(t *testing.T, mode semel.Mode) {
	const clients, keys = 64, 20
	s := newShop(t, mode, shopSettings{})
	other, err := openSQLite(t.Context(), "sqlite", filepath.Clean(s.path))
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, other.handles.Close()) })
	twin := newShopOn(t, other, mode, shopSettings{})

	var waiting sync.Map // key → channel that is closed at the first loser
	until := func(shop *shop) http.Handler {
		return shop.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
			seen, _ := waiting.Load(r.Header.Get("Idempotency-Key"))
			<-seen.(chan struct{}) //nolint:forcetypeassert // the map holds nothing else.
			shop.created(t)(w, r)
		})
	}
	one, two := serve(t, overHTTP1, until(s)), serve(t, overHTTP1, until(twin))
	for i := range keys {
		o := ask{}.keyed("K" + strconv.Itoa(i))
		seen, barrier := make(chan struct{}), make(chan struct{})
		waiting.Store("K"+strconv.Itoa(i), seen)
		var first sync.Once
		answers := make(chan string, clients)
		for n := range clients {
			srv := one
			if n%2 == 1 {
				srv = two
			}
			go func() {
				<-barrier
				got := send(t, srv, o).told()
				if got != "201 executed" {
					first.Do(func() { close(seen) })
				}
				answers <- got
			}()
		}
		close(barrier)
		got := map[string]int{}
		for range clients {
			got[<-answers]++
		}
		assert.Equal(t, got["201 executed"], 1, "key %d: %v", i, got)
		assert.Equal(t, got["409 in-progress"]+got["201 replayed"], clients-1, "key %d: %v", i, got)
	}
	assert.Equal(t, s.runs.Load()+twin.runs.Load(), int64(keys), "runs")
	assert.Equal(t, s.payments(t), keys, "rows")
}

func timeCases(t *testing.T) {
	t.Helper()
	inModes(t, "expiry-read: A record answers until it expires, and then neither answers nor blocks", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{guard: semel.Config{Retention: time.Minute}})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		for _, key := range []string{"K1", "K2"} {
			assert.Equal(t, send(t, srv, ask{body: `{"qty":1}`}.keyed(key)).told(), "201 executed")
		}
		assert.NoError(t, s.clock.Advance(50*time.Second))
		assert.Equal(t, send(t, srv, ask{body: `{"qty":1}`}).told(), "201 replayed")
		assert.NoError(t, s.clock.Advance(11*time.Second))
		other := ask{body: `{"qty":2}`}
		assert.Equal(t, send(t, srv, other).told(), "201 executed")
		s.sold(t, 3)
		answers := make(chan string, 20)
		for range cap(answers) {
			go func() { answers <- send(t, srv, other.keyed("K2")).told() }()
		}
		got := map[string]int{}
		for range cap(answers) {
			got[<-answers]++
		}
		assert.Equal(t, got["201 executed"], 1, "of %v", got)
		assert.Equal(t, got["409 in-progress"]+got["201 replayed"], cap(answers)-1, "of %v", got)
		s.sold(t, 4)
	})

	inModes(t, "expiry-policy: After retention a retry is a new run, and not before", func(t *testing.T, mode semel.Mode) {
		s := newShop(t, mode, shopSettings{guard: semel.Config{Retention: 24 * time.Hour}})
		srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		assert.NoError(t, s.clock.Advance(s.guard.Rules().Retention-time.Minute))
		assert.Equal(t, send(t, srv, ask{}).told(), "201 replayed")
		assert.NoError(t, s.clock.Advance(time.Hour))
		assert.Equal(t, send(t, srv, ask{}).told(), "201 executed")
		s.sold(t, 2)
	})

	for _, skew := range []time.Duration{30 * time.Second, -30 * time.Second} {
		inModes(t, "clock: The wait lies within the lease however far the clocks are apart, "+skew.String(), func(t *testing.T, mode semel.Mode) {
			const lease = 10 * time.Second
			s := newShop(t, mode, shopSettings{guard: semel.Config{Lease: lease}})
			assert.NoError(t, s.clock.Advance(skew))
			h, inside, goOn := blocking(t, s)
			srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
			first := sending(t, srv, ask{})
			<-inside
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), "409 in-progress")
			wait, err := strconv.Atoi(again.Header.Get("Retry-After"))
			assert.NoError(t, err)
			assert.True(t, wait > 0 && wait <= int(lease/time.Second), "Retry-After is %d", wait)
			close(goOn)
			assert.Equal(t, (<-first).told(), "201 executed")
			s.sold(t, 1)
		})
	}
}
