package semelhttp_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

// begin sends a request in the background.
func begin(t *testing.T, srv *memhttp.Server, key string) <-chan reply {
	t.Helper()
	answer := make(chan reply, 1)
	go func() { answer <- post(t, srv.Client(), srv.URL(), key, "") }()
	synctest.Wait()
	return answer
}

func TestConflictStatus(t *testing.T) {
	t.Parallel()
	t.Run("To lose the race for a key is no fault of the store: 409, and other keys are served", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, settings{})
			srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
			goOn := s.store.holdAt(claimed)
			first := begin(t, srv, "k1")
			for range 10 {
				got := post(t, srv.Client(), srv.URL(), "k1", "")
				assert.Equal(t, got.StatusCode, http.StatusConflict)
				assert.Equal(t, got.outcome(), "in-progress")
				time.Sleep(100 * time.Millisecond)
			}
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k2", "").outcome(), "executed")
			goOn()
			assert.Equal(t, (<-first).outcome(), "executed")
			assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "replayed")
			assert.Equal(t, s.counters.Count(semel.EventStoreFault), int64(0), "a breaker that counts them stays closed")
			assert.Equal(t, s.runCount(), 2)
		})
	})
}

func TestOrphanAfterCrash(t *testing.T) {
	t.Parallel()
	for recovery, want := range map[semel.Recovery]string{semel.Resume(semel.Forever): "executed", semel.Hold(): "unknown"} {
		t.Run("A killed process blocks its key for one lease, and under "+recovery.String()+" it is then "+want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shared := newMemstore(t)
				node := func(handler func(*service) http.HandlerFunc) (*service, *memhttp.Server) {
					s := newService(t, settings{store: shared, recovery: recovery})
					return s, memhttp.New(t, s.protect(t, semelhttp.Route{}, handler(s)))
				}
				dead, deadServer := node(func(s *service) http.HandlerFunc {
					return func(http.ResponseWriter, *http.Request) {
						gone := errors.New("the process was killed")
						s.store.set(func(s *faultyStore) { s.beginErr, s.extend, s.finish, s.get = gone, gone, gone, gone })
						time.Sleep(48 * time.Hour)
					}
				})
				alive, server := node(func(s *service) http.HandlerFunc { return s.created })
				begin(t, deadServer, "k1")

				time.Sleep(10 * time.Second)
				early := post(t, server.Client(), server.URL(), "k1", "")
				assert.Equal(t, early.outcome(), "in-progress")
				wait, err := strconv.Atoi(early.Header.Get("Retry-After"))
				assert.NoError(t, err)
				assert.True(t, wait >= 1 && wait <= 20, "Retry-After is %d; the lease has 20 s left", wait)

				time.Sleep(21 * time.Second)
				assert.Equal(t, post(t, server.Client(), server.URL(), "k1", "").outcome(), want)
				time.Sleep(30 * 24 * time.Hour)
				if want == "unknown" {
					assert.Equal(t, post(t, server.Client(), server.URL(), "k1", "").outcome(), "unknown", "it is not forgotten")
				}
				assert.Equal(t, alive.runCount(), map[string]int{"executed": 1}[want])
				assert.Equal(t, dead.counters.Count(semel.EventClaimed), int64(1))
			})
		})
	}
}

func TestWaiter(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]string{finishing: "in-progress", finished: "replayed"} {
		t.Run("A repeat does not wait for the first: at once it is "+want+" while the end is "+point, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, settings{})
				srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, s.created))
				goOn := s.store.holdAt(point)
				first := begin(t, srv, "k1")
				began := time.Now()
				assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), want)
				assert.Equal(t, time.Since(began), time.Duration(0))
				goOn()
				executed := <-first
				assert.Equal(t, executed.outcome(), "executed")
				again := post(t, srv.Client(), srv.URL(), "k1", "")
				assert.True(t, again.replayed(), "the repeat that comes back gets a replay")
				assert.Equal(t, again.text, executed.text)
				assert.Equal(t, s.runCount(), 1)
			})
		})
	}
}
