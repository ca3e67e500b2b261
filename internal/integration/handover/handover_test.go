//go:build !race

package handover

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// claims are what a handler may rely on, whatever it writes with.
var claims = map[string]func(*testing.T, library, string){
	"the row and the reply are there, and once":                      bothAreThere,
	"an error of the handler undoes the row and frees the key":       errorUndoes,
	"a panic undoes the row and frees the key":                       panicUndoes,
	"a nested transaction that fails is undone alone":                giftIsUndoneAlone,
	"a failed statement that is passed over":                         failurePassedOver,
	"a lost connection that is passed over saves nothing":            lossPassedOver,
	"in a transaction of the service's own both are there, and once": ownBothAreThere,
	"in a transaction of the service's own an error undoes both":     ownErrorUndoes,
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tryAll(t, s.libraries(t))
		})
	}
	t.Run("PostgreSQL with pgx", func(t *testing.T) {
		t.Parallel()
		tryAll(t, pgxLibraries(t))
	})
}

func tryAll(t *testing.T, all map[string]library) {
	t.Helper()
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for claim, holds := range claims {
				t.Run(claim, func(t *testing.T) { holds(t, l, name+": "+claim) })
			}
			for claim, holds := range automatic[name] {
				t.Run(claim, func(t *testing.T) { holds(t, l) })
			}
		})
	}
}

// placeIt is a handler that places an order, and answers with then.
func (l library) placeIt(item string, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := l.place(r.Context(), item)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if then != nil {
			then(w, r)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", id)
	}
}

// is holds an answer against a status and an outcome.
func is(t *testing.T, w *httptest.ResponseRecorder, status int, outcome string) {
	t.Helper()
	assert.Equal(t, w.Code, status, "status of %s", w.Body)
	assert.Equal(t, w.Header().Get("Semel-Outcome"), outcome)
}

func bothAreThere(t *testing.T, l library, item string) {
	first := l.send(t, item, l.placeIt(item, nil))
	is(t, first, http.StatusCreated, "executed")
	again := l.send(t, item, l.placeIt(item, nil))
	is(t, again, http.StatusCreated, "replayed")
	assert.Equal(t, again.Body.String(), first.Body.String(), "the repeat")
	assert.Equal(t, l.orders(t, item), 1)
}

func errorUndoes(t *testing.T, l library, item string) {
	is(t, l.send(t, item, l.placeIt(item, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusInternalServerError)
	})), http.StatusInternalServerError, "released")
	assert.Equal(t, l.orders(t, item), 0, "after the error")
	is(t, l.send(t, item, l.placeIt(item, nil)), http.StatusCreated, "executed")
	assert.Equal(t, l.orders(t, item), 1)
}

func panicUndoes(t *testing.T, l library, item string) {
	l.send(t, item, l.placeIt(item, func(http.ResponseWriter, *http.Request) { panic("no") }))
	assert.Equal(t, l.orders(t, item), 0, "after the panic")
	is(t, l.send(t, item, l.placeIt(item, nil)), http.StatusCreated, "executed")
	assert.Equal(t, l.orders(t, item), 1)
}

func giftIsUndoneAlone(t *testing.T, l library, item string) {
	if l.withGift == nil {
		return
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		if err := l.withGift(r.Context(), item, taken); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}
	is(t, l.send(t, item, handler), http.StatusCreated, "executed")
	is(t, l.send(t, item, handler), http.StatusCreated, "replayed")
	assert.Equal(t, l.orders(t, item), 1)
}

// failurePassedOver: PostgreSQL undoes all of the transaction, and the reply is
// not saved. The others undo the statement, and what the handler says counts.
func failurePassedOver(t *testing.T, l library, item string) {
	w := l.send(t, item, l.placeIt(item, func(w http.ResponseWriter, r *http.Request) {
		_, err := l.place(r.Context(), taken)
		assert.True(t, err != nil, "an item that is taken is refused")
		w.WriteHeader(http.StatusCreated)
	}))
	if l.aborts {
		is(t, w, http.StatusServiceUnavailable, "released")
		assert.Equal(t, l.orders(t, item), 0)
		return
	}
	is(t, w, http.StatusCreated, "executed")
	assert.Equal(t, l.orders(t, item), 1)
}

func lossPassedOver(t *testing.T, l library, item string) {
	if l.kill == "" {
		return
	}
	is(t, l.send(t, item, l.placeIt(item, func(w http.ResponseWriter, r *http.Request) {
		backend, err := l.ask(r.Context())
		assert.NoError(t, err)
		_, err = l.db.ExecContext(t.Context(), l.kill, backend)
		assert.NoError(t, err)
		l.place(r.Context(), item+", second")
		w.WriteHeader(http.StatusCreated)
	})), http.StatusServiceUnavailable, "released")
	assert.Equal(t, l.orders(t, item)+l.orders(t, item+", second"), 0, "after the loss")
	// In atomic mode the key is in progress until the server has ended the
	// session.
	var again *httptest.ResponseRecorder
	assert.Eventually(t, "the key is free", func() bool {
		again = l.send(t, item, l.placeIt(item, nil))
		return again.Code != http.StatusConflict
	})
	is(t, again, http.StatusCreated, "executed")
	assert.Equal(t, l.orders(t, item), 1)
}

// call is what own is called with.
func call(key string) semel.Call {
	return semel.Call{Scope: "customer:1", Key: key, Fingerprint: semel.FingerprintOf([]byte(key)), AllInTx: true}
}

func ownBothAreThere(t *testing.T, l library, item string) {
	if l.own == nil {
		return
	}
	first, err := l.own(t.Context(), call(item), item)
	assert.NoError(t, err)
	assert.Equal(t, first.Outcome, semel.OutcomeExecuted)
	again, err := l.own(t.Context(), call(item), item)
	assert.NoError(t, err)
	assert.Equal(t, again.Outcome, semel.OutcomeReplayed)
	assert.Equal(t, string(again.Reply.Body), string(first.Reply.Body))
	assert.Equal(t, l.orders(t, item), 1)
}

// state is that of a key.
func (l library) state(t *testing.T, key string) semel.State {
	t.Helper()
	rec, err := l.guard.Get(t.Context(), "customer:1", key)
	assert.NoError(t, err)
	return rec.State
}

func ownErrorUndoes(t *testing.T, l library, item string) {
	if l.own == nil {
		return
	}
	_, err := l.own(t.Context(), call(item), taken)
	assert.True(t, err != nil, "an item that is taken is refused")
	assert.Equal(t, l.state(t, item), semel.StateReleased)
	res, err := l.own(t.Context(), call(item), item)
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	assert.Equal(t, l.orders(t, item), 1)
}
