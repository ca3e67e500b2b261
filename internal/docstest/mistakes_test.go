package docstest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/semelhttp"
)

const mistakesDocument = "docs/common-mistakes.md"

// mistakes are the sections of the document that the demo cannot show: what
// each says is made to happen here, the mistake first and then what is right.
var mistakes = map[string]func(*testing.T){
	"A scope that does not tell callers apart":                 scopeForAll,
	"A header that chooses whose, left out of the fingerprint": headerLeftOut,
	"Every 5xx releases the key":                               everyErrorReleases,
	"Released because the process is going down":               releasedOnShutdown,
	"Retention shorter than the clients' retries":              shortRetention,
	"The memory store with two processes":                      memoryOfTwoProcesses,
	"A timeout inside":                                         timeoutInside,
	"Compression inside":                                       compressionInside,
	"Work that goes on after the handler returned":             workGoesOn,
	"An error that a framework answers outside":                errorAnsweredOutside,
}

func TestEachMistakeHappensAsItsSectionSays(t *testing.T) {
	t.Parallel()
	for name, happens := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			happens(t)
		})
	}
}

// A section is played on the demo, or made to happen here.
func TestEveryMistakeIsShown(t *testing.T) {
	t.Parallel()
	left := maps.Clone(mistakes)
	text := read(t, mistakesDocument)
	for section := range strings.SplitSeq(text[strings.Index(text, "\n### ")+1:], "### ") {
		title, body, _ := strings.Cut(section, "\n")
		_, here := left[title]
		delete(left, title)
		if title != "" && !here && !strings.Contains(body, "```console") {
			t.Errorf("%s: nothing shows %q", mistakesDocument, title)
		}
	}
	for title := range left {
		t.Errorf("%s has no section %q", mistakesDocument, title)
	}
}

// bank counts what it is asked for, like one that knows no keys.
type bank struct{ charges atomic.Int64 }

// pay charges and says so.
func (b *bank) pay(w http.ResponseWriter, _ *http.Request) {
	b.charges.Add(1)
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, "paid")
}

func newGuard(t *testing.T, recovery semel.Recovery, cfg semel.Config) *semel.Guard {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	guard, err := semel.New(store, recovery, cfg)
	assert.NoError(t, err)
	return guard
}

func customer(r *http.Request) (string, error) { return "customer:" + r.Header.Get("X-Customer"), nil }

// protect puts the middleware before a handler.
func protect(t *testing.T, guard *semel.Guard, scope semelhttp.ScopeFunc, route semelhttp.Route, next http.Handler) http.Handler {
	t.Helper()
	mw, err := semelhttp.New(guard, scope, semelhttp.Config{})
	assert.NoError(t, err)
	route.Name = "payments"
	h, err := mw.Protect(next, route)
	assert.NoError(t, err)
	return h
}

// send sends one payment under the key k1; header names and values alternate.
func send(h http.Handler, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"amount":2500}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k1")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func outcome(w *httptest.ResponseRecorder) string { return w.Header().Get("Semel-Outcome") }

func scopeForAll(t *testing.T) {
	everybody := func(*http.Request) (string, error) { return "payments", nil }
	greet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "card of "+r.Header.Get("X-Customer"))
	})
	wrong := protect(t, newGuard(t, semel.Hold(), semel.Config{}), everybody, semelhttp.Route{}, greet)
	send(wrong, "X-Customer", "ann")
	assert.Equal(t, send(wrong, "X-Customer", "bob").Body.String(), "card of ann", "what bob is shown")

	right := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, semelhttp.Route{}, greet)
	send(right, "X-Customer", "ann")
	assert.Equal(t, send(right, "X-Customer", "bob").Body.String(), "card of bob", "what bob is shown")
}

func headerLeftOut(t *testing.T) {
	from := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "taken from "+r.Header.Get("X-Account"))
	})
	wrong := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, semelhttp.Route{}, from)
	send(wrong, "X-Account", "savings")
	assert.Equal(t, send(wrong, "X-Account", "current").Body.String(), "taken from savings", "the payment from the other account")

	route := semelhttp.Route{Headers: []string{"X-Account"}}
	right := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, route, from)
	send(right, "X-Account", "savings")
	assert.Equal(t, send(right, "X-Account", "current").Code, http.StatusUnprocessableEntity)
}

func everyErrorReleases(t *testing.T) {
	for _, c := range []struct {
		route   semelhttp.Route
		charges int64
	}{
		{semelhttp.Route{NotApplied: []int{http.StatusBadGateway}}, 2},
		{semelhttp.Route{}, 1},
	} {
		var b bank
		h := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, c.route,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				b.charges.Add(1) // and its answer is lost
				w.WriteHeader(http.StatusBadGateway)
			}))
		send(h)
		again := send(h)
		assert.Equal(t, b.charges.Load(), c.charges, "charges with NotApplied %v", c.route.NotApplied)
		if c.charges == 1 {
			assert.Equal(t, outcome(again), "unknown")
		}
	}
}

func releasedOnShutdown(t *testing.T) {
	errStopping := errors.New("the service is going down")
	for _, c := range []struct {
		answer  func(error) error
		charges int64
	}{
		{semel.NotApplied, 2},
		{func(err error) error { return err }, 1},
	} {
		var b bank
		guard := newGuard(t, semel.Hold(), semel.Config{})
		call := semel.Call{Scope: "customer:1", Key: "k1", Fingerprint: semel.FingerprintOf([]byte("2500"))}
		for range 2 {
			guard.Do(t.Context(), call, func(context.Context) ([]byte, error) {
				b.charges.Add(1) // on its way when the signal comes
				return nil, c.answer(errStopping)
			})
		}
		assert.Equal(t, b.charges.Load(), c.charges)
	}
}

func shortRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for retention, charges := range map[time.Duration]int64{time.Hour: 2, 24 * time.Hour: 1} {
			var b bank
			h := protect(t, newGuard(t, semel.Hold(), semel.Config{Retention: retention}), customer, semelhttp.Route{}, http.HandlerFunc(b.pay))
			send(h)
			time.Sleep(2 * time.Hour) // the phone was in a tunnel
			send(h)
			assert.Equal(t, b.charges.Load(), charges, "charges with a retention of %v", retention)
		}
	})
}

func memoryOfTwoProcesses(t *testing.T) {
	var b bank
	one := newGuard(t, semel.Hold(), semel.Config{})
	other := newGuard(t, semel.Hold(), semel.Config{})
	for _, guard := range []*semel.Guard{one, other, one, other} {
		send(protect(t, guard, customer, semelhttp.Route{}, http.HandlerFunc(b.pay)))
	}
	assert.Equal(t, b.charges.Load(), int64(2), "charges, one for each memory")
}

func timeoutInside(t *testing.T) {
	slow := func(b *bank) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			b.pay(w, r)
		})
	}
	timeout := func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Second, "too late") }
	synctest.Test(t, func(t *testing.T) {
		var b bank
		wrong := protect(t, newGuard(t, semel.Resume(semel.Forever), semel.Config{}), customer, semelhttp.Route{}, timeout(slow(&b)))
		assert.Equal(t, outcome(send(wrong)), "unknown", "the first request, which goes on")
		assert.Equal(t, outcome(send(wrong)), "unknown", "the second, which runs beside it")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, b.charges.Load(), int64(2))
	})
	synctest.Test(t, func(t *testing.T) {
		var b bank
		right := timeout(protect(t, newGuard(t, semel.Resume(semel.Forever), semel.Config{}), customer, semelhttp.Route{}, slow(&b)))
		assert.Equal(t, send(right).Code, http.StatusServiceUnavailable)
		assert.Equal(t, outcome(send(right)), "in-progress")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, outcome(send(right)), "replayed")
		assert.Equal(t, b.charges.Load(), int64(1))
	})
}

// compressing is a layer that compresses for whoever can read it.
func compressing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		plain := httptest.NewRecorder()
		next.ServeHTTP(plain, r)
		maps.Copy(w.Header(), plain.Header())
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(plain.Code)
		packed := gzip.NewWriter(w)
		packed.Write(plain.Body.Bytes())
		packed.Close()
	})
}

func compressionInside(t *testing.T) {
	var b bank
	guard := func() *semel.Guard { return newGuard(t, semel.Hold(), semel.Config{}) }
	wrong := protect(t, guard(), customer, semelhttp.Route{}, compressing(http.HandlerFunc(b.pay)))
	send(wrong, "Accept-Encoding", "gzip")
	assert.Equal(t, send(wrong, "Accept-Encoding", "identity").Code, http.StatusNotAcceptable)

	right := compressing(protect(t, guard(), customer, semelhttp.Route{}, http.HandlerFunc(b.pay)))
	send(right, "Accept-Encoding", "gzip")
	assert.Equal(t, send(right, "Accept-Encoding", "identity").Body.String(), "paid")
	unpacked, err := gzip.NewReader(bytes.NewReader(send(right, "Accept-Encoding", "gzip").Body.Bytes()))
	assert.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	assert.NoError(t, err)
	assert.Equal(t, string(text), "paid")
}

func workGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bank
		var seen error
		h := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, semelhttp.Route{},
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() {
					select {
					case <-time.After(time.Minute): // of work
						b.charges.Add(1)
					case <-r.Context().Done():
						seen = r.Context().Err()
					}
				}()
				w.WriteHeader(http.StatusAccepted)
			}))
		assert.Equal(t, send(h).Code, http.StatusAccepted)
		synctest.Wait()
		assert.ErrorIs(t, seen, context.Canceled)
		assert.Equal(t, outcome(send(h)), "replayed", "the repeat, for which it is done")
		assert.Equal(t, b.charges.Load(), int64(0))
	})
}

func errorAnsweredOutside(t *testing.T) {
	work := func() error { return errors.New("boom") }
	var seen error
	inside := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, semelhttp.Route{},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = work() }))
	wrong := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.ServeHTTP(w, r)
		if seen != nil {
			http.Error(w, seen.Error(), http.StatusInternalServerError)
		}
	})
	assert.Equal(t, send(wrong).Code, http.StatusOK)
	assert.Equal(t, outcome(send(wrong)), "replayed")

	whole := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := work(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	right := protect(t, newGuard(t, semel.Hold(), semel.Config{}), customer, semelhttp.Route{}, whole)
	assert.Equal(t, send(right).Code, http.StatusInternalServerError)
	assert.Equal(t, outcome(send(right)), "unknown")
}
