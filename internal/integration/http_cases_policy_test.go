package integration

import (
	"net/http"
	"net/http/httptest"
	"strconv"
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

// policyCases are of what is kept, what is let through, and what is left.
func policyCases(all *httpCases) {
	all.add("store-loss: Processes that share a store, and one that is started anew, know each other's keys", func(t *testing.T, on shopWay) {
		s := newShop(t, on, shopSettings{})
		one := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
		anew := newShopOn(t, s.again(t, nil), on, shopSettings{})
		two := serve(t, overHTTP1, anew.protect(t, semelhttp.Route{}, anew.created(t)))
		first := send(t, one, ask{})
		for _, srv := range []server{two, one} {
			again := send(t, srv, ask{})
			assert.Equal(t, again.told(), replayed)
			assert.Equal(t, again.text, first.text)
		}
		assert.Equal(t, anew.runs.Load(), 0)
		s.sold(t, 1)
	})
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		all.add("stored-error: A failure that may pass is not kept, and what comes after it is, "+strconv.Itoa(status), func(t *testing.T, on shopWay) {
			storedError(t, on, status)
		})
	}
	all.add("client-error-policy: A refusal is kept, and the corrected request needs a key of its own", clientError)
	all.add("ambiguous-failure: An error that a layer outside makes of a success leaves the success saved", failedOutside)
	all.add("ambiguous-failure: An error that a layer inside makes of a success is what is known of it", failedInside)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		all.add("safe-methods: A read with a key is answered anew, and the key is free, "+method, func(t *testing.T, on shopWay) {
			safeMethod(t, on, method)
		})
	}
	all.add("cors: A preflight needs no key, leaves no record and reaches who answers it", preflight)
	all.add("memory-growth: Keys leave with their retention, and who is refused leaves none", growth)
}

// storedError answers the first request with an error and no effect.
func storedError(t *testing.T, on shopWay, status int) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	var failed atomic.Bool
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if failed.CompareAndSwap(false, true) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
			return
		}
		s.created(t)(w, r)
	}))
	first, err := try(t.Context(), srv, ask{})
	assert.NoError(t, err)
	assert.Equal(t, first.StatusCode, status)
	assert.Equal(t, send(t, srv, ask{}).told(), executed)
	assert.Equal(t, send(t, srv, ask{}).told(), replayed)
	s.sold(t, 1)
}

func clientError(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == int64(len(`{"code":"0000"}`)) && r.Header.Get("X-Code") == "0000" {
			http.Error(w, "no such code", http.StatusBadRequest)
			return
		}
		s.created(t)(w, r)
	}))
	wrong := ask{body: `{"code":"0000"}`}.with("X-Code", "0000")
	right := ask{body: `{"code":"1234"}`}.with("X-Code", "1234")
	first := send(t, srv, wrong)
	assert.Equal(t, first.told(), "400 executed")
	refused := send(t, srv, right)
	assert.Equal(t, refused.told(), reused)
	assert.Contains(t, refused.text, "needs a new key")
	again := send(t, srv, wrong)
	assert.Equal(t, again.told(), "400 replayed")
	assert.Equal(t, again.text, first.text)
	s.sold(t, 0)
	assert.Equal(t, send(t, srv, right.keyed("K2")).told(), executed)
	s.sold(t, 1)
}

// spoiling turns the first answer of next into 502.
func spoiling(next http.Handler) http.Handler {
	var spoiled atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !spoiled.CompareAndSwap(false, true) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	})
}

func failedOutside(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	srv := serve(t, overHTTP1, spoiling(s.protect(t, semelhttp.Route{}, s.created(t))))
	assert.Equal(t, send(t, srv, ask{}).StatusCode, http.StatusBadGateway)
	assert.Equal(t, send(t, srv, ask{}).told(), replayed)
	s.sold(t, 1)
}

func failedInside(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, spoiling(s.created(t)).ServeHTTP))
	first := send(t, srv, ask{})
	assert.Equal(t, first.StatusCode, http.StatusBadGateway)
	assert.Equal(t, send(t, srv, ask{}).told(), executed)
	assert.Equal(t, send(t, srv, ask{}).told(), replayed)
	// The row of the first run went with its transaction; in leased mode only
	// an effect that knows its operation id is one.
	rows := 1
	if on.mode == semel.Leased {
		rows = 2
	}
	assert.Equal(t, s.rows(t), map[string]int{"K1": rows}, "rows")
	assert.Equal(t, s.runs.Load(), 2, "runs")
}

func safeMethod(t *testing.T, on shopWay, method string) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	var state atomic.Value
	state.Store("new")
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			s.created(t)(w, r)
			return
		}
		w.Header().Set("X-State", state.Load().(string)) //nolint:forcetypeassert // only this test stores.
	}))
	read := ask{method: method}
	assert.Equal(t, send(t, srv, read).Header.Get("X-State"), "new")
	state.Store("paid")
	assert.Equal(t, send(t, srv, read).Header.Get("X-State"), "paid")
	assert.Equal(t, len(s.records(t)), 0, "records")
	assert.Equal(t, send(t, srv, ask{}).told(), executed)
	s.sold(t, 1)
}

func preflight(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, r.Method, http.MethodOptions)
		w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		w.WriteHeader(http.StatusNoContent)
	}))
	asked := ask{method: http.MethodOptions}.with("Origin", "https://a.example").with("Access-Control-Request-Method", "POST").
		with("Access-Control-Request-Headers", "idempotency-key,content-type")
	asked.header["Idempotency-Key"] = nil
	a := send(t, srv, asked)
	assert.Equal(t, a.StatusCode, http.StatusNoContent)
	assert.Equal(t, a.Header.Get("Access-Control-Allow-Headers"), "idempotency-key,content-type")
	assert.Equal(t, len(s.records(t)), 0, "records")
}

func growth(t *testing.T, on shopWay) {
	t.Helper()
	const keys = 50
	s := newShop(t, on, shopSettings{})
	h := s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	askAll(h, keys)
	assert.Equal(t, len(s.records(t)), keys, "records")
	s.advance(t, s.guard.Rules().Retention+time.Second)
	n, err := s.Sweep(t.Context(), 2*keys)
	assert.NoError(t, err)
	assert.Equal(t, n, keys, "removed: one for each key, and none for who was refused")
	n, err = s.Sweep(t.Context(), 2*keys)
	assert.NoError(t, err)
	assert.Equal(t, n, 0, "left")
}

// askAll sends requests with as many keys to h, and as many that are refused
// before there is a record: no caller, and no key that can be read.
func askAll(h http.Handler, keys int) {
	for i := range keys {
		key := "key-" + strconv.Itoa(i)
		for _, set := range []func(http.Header){
			func(header http.Header) { header.Set("Idempotency-Key", key) },
			func(header http.Header) { header.Set("Idempotency-Key", key); header.Set("Authorization", "nobody") },
			func(header http.Header) { header.Set("Idempotency-Key", `"`+key) },
		} {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			set(r.Header)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
}

func TestMemoryOfTheMemoryStoreDoesNotGrowWithKeysThatAreOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys = 5000
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		guard, err := semel.New(store, semel.Hold(), semel.Config{Logger: unheard})
		assert.NoError(t, err)
		mw, err := semelhttp.New(guard, shopCaller, semelhttp.Config{Logger: unheard})
		assert.NoError(t, err)
		h, err := mw.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }), semelhttp.Route{Name: "orders"})
		assert.NoError(t, err)
		askAll(h, keys)
		time.Sleep(guard.Rules().Retention + time.Second)
		n, err := store.Sweep(t.Context(), 10*keys)
		assert.NoError(t, err)
		assert.Equal(t, n, keys, "removed: one for each key, and none for who was refused")
		left, err := store.Sweep(t.Context(), 10*keys)
		assert.NoError(t, err)
		assert.Equal(t, left, 0, "left")
	})
}
