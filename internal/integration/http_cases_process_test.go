package integration

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// httpShop serves a shop on a port of its own, whose address is its first
// line. The first run of its handler says when it is inside, and answers with
// the status that it is told by a line; before a 201 it leaves its row. Another
// run, which is a fault, answers 500 at once.
func httpShop() error {
	store, mode, err := openShopStore()
	if err != nil {
		return err
	}
	s, err := openShop(store, shopSettings{})
	if err != nil {
		return err
	}
	told := make(chan string)
	var entered atomic.Bool
	orders, err := protectIn(mode, s.mw, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if !entered.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Println("inside")
		status, err := strconv.Atoi(<-told)
		if err == nil && status == http.StatusCreated {
			err = store.sell(r.Context(), mode, r.Header.Get("Idempotency-Key"))
		}
		if err != nil {
			panic(err) //nolint:forbidigo // the test reads it.
		}
		w.WriteHeader(status)
	})
	if err != nil {
		return err
	}
	exports, err := protectIn(mode, s.mw, semelhttp.Route{Name: "exports"}, export)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", orders)
	mux.Handle("/exports", exports)
	mux.HandleFunc("GET /allocated", allocated)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(l, mux) //nolint:errcheck,gosec // it ends with the process.
	fmt.Println("http://" + l.Addr().String())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		told <- in.Text()
	}
	return in.Err()
}

// exportSize is that of a reply that nobody should have in memory.
const exportSize = 200 << 20

// export answers with exportSize bytes, flushed at their beginning.
func export(w http.ResponseWriter, _ *http.Request) {
	piece := make([]byte, 64<<10)
	for sent := 0; sent < exportSize; sent += len(piece) {
		if _, err := w.Write(piece); err != nil {
			panic(err) //nolint:forbidigo // the test reads it.
		}
		if sent == 0 {
			w.(http.Flusher).Flush() //nolint:forcetypeassert // the recorder is one.
		}
	}
}

// allocated says how many bytes this process has ever allocated.
func allocated(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprint(w, m.TotalAlloc)
}

// shopProcess is a shop in a process of its own.
type shopProcess struct {
	*process

	srv server
}

// startShop starts a shop on the records of s.
func startShop(t *testing.T, s *shop) shopProcess {
	t.Helper()
	p := start(t, command("http-shop", pathVariable+"="+s.address(), kindVariable+"="+s.on.String()))
	// Without connections that wait: on a used one the transport would send a
	// request with a key again by itself.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return shopProcess{process: p, srv: server{p.line(t), client}}
}

func processCases(all *httpCases) {
	for name, recovery := range map[string]semel.Recovery{"resume": semel.Resume(semel.Forever), "hold": semel.Hold()} {
		all.addBut(ifAtomic, "orphan-after-crash: A killed process blocks its key for the lease and no longer, "+name, func(t *testing.T, on shopWay) {
			s := newShop(t, on, shopSettings{recovery: recovery})
			dead := startShop(t, s)
			broken := make(chan error, 1)
			go func() {
				_, err := try(context.Background(), dead.srv, ask{})
				broken <- err
			}()
			assert.Equal(t, dead.line(t), "inside")
			dead.kill(t)
			assert.True(t, <-broken != nil, "the client of the dead process sees a broken connection")

			srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
			for age := time.Duration(0); age < semel.DefaultLease; age += 10 * time.Second {
				again := send(t, srv, ask{})
				assert.Equal(t, again.told(), "409 in-progress", "after %v", age)
				wait, err := strconv.Atoi(again.Header.Get("Retry-After"))
				assert.NoError(t, err)
				left := int((semel.DefaultLease - age) / time.Second)
				assert.True(t, wait > 0 && wait <= left, "after %v: Retry-After is %d, the lease has %d left", age, wait, left)
				s.advance(t, 10*time.Second)
			}
			s.advance(t, time.Second)
			if recovery == semel.Hold() {
				for range 2 {
					assert.Equal(t, send(t, srv, ask{}).told(), "409 unknown")
				}
				s.sold(t, 0)
				return
			}
			assert.Equal(t, send(t, srv, ask{}).told(), executed)
			assert.Equal(t, send(t, srv, ask{}).told(), replayed)
			s.sold(t, 1)
		})
	}

	all.addBut(unlessAtomic, "orphan-after-crash: A killed process blocks its key until its transaction is over", orphanedTx)
	all.addBut(unlessAtomic, "fencing: Who slept until the server ended its transaction commits nothing", sleptThroughTx)

	for _, status := range []int{http.StatusTooManyRequests, http.StatusCreated} {
		all.addBut(ifAtomic, "fencing: Who slept through a takeover and then answers "+strconv.Itoa(status)+" lets nobody else in", func(t *testing.T, on shopWay) {
			fencing(t, on, status)
		})
	}
}

func orphanedTx(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{recovery: semel.Hold()})
	dead := startShop(t, s)
	broken := make(chan error, 1)
	go func() {
		_, err := try(context.Background(), dead.srv, ask{})
		broken <- err
	}()
	assert.Equal(t, dead.line(t), "inside")
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
	assert.Equal(t, send(t, srv, ask{}).told(), "409 in-progress")
	dead.kill(t)
	assert.True(t, <-broken != nil, "the client of the dead process sees a broken connection")
	s.eventuallyRuns(t, srv)
	s.sold(t, 1)
}

// eventuallyRuns waits until a repeat is executed, and checks that the next is
// replayed.
func (s *shop) eventuallyRuns(t *testing.T, srv server) {
	t.Helper()
	assert.Eventually(t, "a repeat runs", func() bool { return send(t, srv, ask{}).told() == executed })
	assert.Equal(t, send(t, srv, ask{}).told(), replayed)
}

func sleptThroughTx(t *testing.T, on shopWay) {
	t.Helper()
	store := newPgx(t, pgxConfig{})
	store.exec(t, idleFor1s)
	s := newShopOn(t, newPgxShop(t, store), on, shopSettings{})
	sleeper := startShop(t, s)
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		a, err := try(context.Background(), sleeper.srv, ask{})
		if err == nil && a.StatusCode == http.StatusCreated {
			t.Errorf("the sleeper's client is told %s", a.told())
		}
	}()
	assert.Equal(t, sleeper.line(t), "inside")
	sleeper.freeze(t)
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
	s.eventuallyRuns(t, srv)
	assert.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
	sleeper.tell(t, strconv.Itoa(http.StatusCreated))
	<-woken
	assert.Equal(t, send(t, sleeper.srv, ask{}).told(), replayed, "who asks the sleeper")
	s.sold(t, 1)
}

// fencing lets a process sleep inside its handler until another has taken
// over, and then end with the status: 429 releases a key, 201 finishes it.
func fencing(t *testing.T, on shopWay, status int) {
	s := newShop(t, on, shopSettings{})
	sleeper := startShop(t, s)
	a := sending(t, sleeper.srv, ask{})
	assert.Equal(t, sleeper.line(t), "inside")
	sleeper.freeze(t)
	s.advance(t, semel.DefaultLease+time.Second)

	h, inside, goOn := blocking(t, s)
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, h))
	b := sending(t, srv, ask{})
	select {
	case <-inside:
	case got := <-b:
		t.Fatalf("who takes over is told %s", got.told())
	}
	assert.NoError(t, sleeper.Process.Signal(syscall.SIGCONT))
	sleeper.tell(t, strconv.Itoa(status))
	assert.Equal(t, (<-a).told(), "409 in-progress", "the sleeper's client")
	for name, asked := range map[string]server{"the sleeper": sleeper.srv, "its heir": srv} {
		assert.Equal(t, send(t, asked, ask{}).told(), "409 in-progress", "a third, asking %s", name)
	}
	close(goOn)
	assert.Equal(t, (<-b).told(), executed)
	last := send(t, sleeper.srv, ask{})
	assert.Equal(t, last.told(), replayed)
	assert.Equal(t, last.text, "{\"id\":1}\n", "the heir's reply")
	if on.mode == semel.Leased && status == http.StatusCreated {
		// What a handler writes by itself nobody can refuse: only the
		// transaction is fenced.
		assert.Equal(t, s.rows(t), map[string]int{"K1": 2})
		return
	}
	s.sold(t, 1)
}
