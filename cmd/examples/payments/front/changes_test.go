package front_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// stream reads GET /demo/changes.
type stream struct {
	resp   *http.Response
	events *bufio.Scanner
}

func (rg *rig) listen(t *testing.T) stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rg.url+"/demo/changes", nil)
	assert.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	assert.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	assert.Equal(t, resp.Header.Get("Content-Type"), "text/event-stream")
	return stream{resp, bufio.NewScanner(resp.Body)}
}

// next waits for an event and reports whether there was one before the stream
// ended.
func (s stream) next() bool {
	for s.events.Scan() {
		if s.events.Text() == "event: changed" {
			return true
		}
	}
	return false
}

func TestChanges(t *testing.T) {
	t.Parallel()

	t.Run("a stream speaks at once, and when something changes", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		s := rg.listen(t)
		assert.True(t, s.next(), "no event at the start")
		rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "k")
		assert.True(t, s.next(), "no event for a payment")
		rg.arm(t, `{"fault":"slow"}`)
		assert.True(t, s.next(), "no event for a fault")
		rg.log.Changed()
		assert.True(t, s.next(), "no event for another change")
	})

	t.Run("a stream ends when the front is stopped", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		s := rg.listen(t)
		assert.True(t, s.next(), "no event at the start")
		rg.front.Stop()
		rg.front.Stop() // again is nothing
		for s.next() {  //nolint:revive // what was written before may still come.
		}
		assert.NoError(t, s.events.Err())
	})

	t.Run("an idle stream writes nothing, and many changes at once are one event", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			log := &front.Log{}
			f := newFront(t, log)
			w := httptest.NewRecorder()
			ctx, leave := context.WithCancel(t.Context())
			go f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/demo/changes", nil))
			events := func(after time.Duration) int {
				time.Sleep(after)
				synctest.Wait()
				return strings.Count(w.Body.String(), "event: changed\ndata:\n\n")
			}
			assert.Equal(t, events(time.Hour), 1, "events of an idle hour")
			for range 1000 {
				log.Changed()
			}
			assert.Equal(t, events(time.Hour), 2, "events after a thousand changes at once")
			leave()
			synctest.Wait()
		})
	})
}

func TestStreamsSpeakTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &front.Log{}
		f := newFront(t, log)
		ctx, leave := context.WithCancel(t.Context())
		streams := make([]moments, 10)
		for i := range streams {
			streams[i].ResponseRecorder = httptest.NewRecorder()
			go f.Handler().ServeHTTP(&streams[i], httptest.NewRequestWithContext(ctx, http.MethodGet, "/demo/changes", nil))
			time.Sleep(17 * time.Millisecond) // they come one by one
		}
		synctest.Wait()
		for i := range streams {
			streams[i].at = nil
		}
		for range 400 {
			log.Changed()
			time.Sleep(10 * time.Millisecond)
		}
		leave()
		synctest.Wait()
		first := streams[0].at
		assert.True(t, len(first) >= 15 && len(first) <= 17, "%d events in four busy seconds", len(first))
		for i, s := range streams {
			assert.Equal(t, s.at, first, "moments of stream %d", i)
		}
	})
}

// moments notes when something was written to it.
type moments struct {
	*httptest.ResponseRecorder
	at []time.Time
}

func (m *moments) Write(p []byte) (int, error) {
	m.at = append(m.at, time.Now())
	return m.ResponseRecorder.Write(p)
}

// newFront returns a front whose processes are down.
func newFront(t *testing.T, log *front.Log) *front.Front {
	t.Helper()
	return newFrontTo(t, log, func(context.Context) (net.Conn, error) { return nil, net.ErrClosed })
}

// newFrontTo returns a front that reaches its processes through dial.
func newFrontTo(t *testing.T, log *front.Log, dial front.DialFunc) *front.Front {
	t.Helper()
	orders, err := sqlstore.OpenSQLite("sqlite", filepath.Join(t.TempDir(), "orders.db"))
	assert.NoError(t, err)
	t.Cleanup(func() { orders.Close() })
	f, err := front.New(t.Context(), front.Config{
		Service: dial, Bank: dial, Orders: orders.Write, Log: log, Logger: slog.New(slog.DiscardHandler),
		Page: http.NotFoundHandler(), Crowd: http.NotFoundHandler(),
	})
	assert.NoError(t, err)
	return f
}

func TestARequestMayBringItsFaultAlong(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.arm(t, `{"fault":"slow"}`)
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderFault, "bank-error")
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderFault, "none")
	rg.send(t, http.MethodPost, "/payments", order)
	rg.send(t, http.MethodPost, "/payments", order)
	var met []payments.Fault
	for _, e := range rg.log.Entries() {
		met = append(met, e.Fault)
	}
	assert.Equal(t, met, []payments.Fault{payments.BankError, payments.NoFault, payments.Slow, payments.NoFault})
}

func TestTheCrowdIsNotInTheLog(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderCustomer, payments.Crowd)
	rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, len(rg.log.Entries()), 1)
}

func TestTheEndOfAProcessIsToldToWhatItWasBusyWith(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.respond = func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get(payments.InternalRequest) != "1" {
			return
		}
		rg.log.Died("service", 7, "signal: killed")
		rg.log.Died("service", 8, "signal: killed") // another one's end is not this request's
		panic(http.ErrAbortHandler)
	}
	status, _ := rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, status, 0)
	rg.send(t, http.MethodPost, "/payments", order)
	rg.log.Died("service", 9, "signal: killed")
	entries := rg.log.Entries()
	assert.Equal(t, messages(t, entries[0].Lines), []string{"request passed on", "process ended", "connection to the process broke"})
	assert.Contains(t, entries[0].Lines[1], `"which":"service","pid":7,"how":"signal: killed"`)
	assert.Equal(t, messages(t, entries[1].Lines), []string{"request passed on", "reply passed on"})
}

func TestTheEndOfAProcessIsNotToldToWhatIsYetToReachIt(t *testing.T) {
	t.Parallel()
	log := &front.Log{}
	f := newFrontTo(t, log, func(ctx context.Context) (net.Conn, error) {
		log.Died("service", 7, "signal: killed")
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			req, err := http.ReadRequest(bufio.NewReader(far))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body) // else its sender may find the pipe closed
			_, _ = far.Write([]byte("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"))
		}()
		return near, ctx.Err()
	})
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(order)))
	assert.Equal(t, w.Code, http.StatusCreated)
	assert.Equal(t, messages(t, log.Entries()[0].Lines), []string{"request passed on", "reply passed on"})
}

func TestTheEndOfAProcessIsToldToWhatHasJustLostItsConnectionToIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"soon after": {1999 * time.Millisecond, []string{"request passed on", "connection to the process broke", "process ended"}},
		"too late":   {2 * time.Second, []string{"request passed on", "connection to the process broke"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &front.Log{}
				f := newFrontTo(t, log, func(context.Context) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						_, _ = far.Read(make([]byte, 1)) // as much as the process gets of it
						far.Close()
					}()
					return near, nil
				})
				func() {
					defer func() { assert.Equal(t, recover(), any(http.ErrAbortHandler)) }()
					f.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(order)))
				}()
				time.Sleep(c.after)
				log.Died("service", 7, "signal: killed")
				assert.Equal(t, messages(t, log.Entries()[0].Lines), c.want)
			})
		})
	}
}

func TestALedgerThatMeetsAProcessAsItDiesIsAskedForAgain(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.dying.Store(20)
	status, _ := rg.send(t, http.MethodGet, "/demo/ledger", "")
	assert.Equal(t, status, http.StatusOK, "after many connections that broke")
}
