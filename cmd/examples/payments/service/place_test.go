package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/memstore"
	"github.com/semel-dev/semel/sqlstore"
)

// losing is a store that loses the reply of each first attempt, as if its
// process had died just before.
type losing struct{ semel.Store }

// Finish fails for a first attempt.
func (l losing) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	if c.Attempt == 1 {
		return semel.Held{}, semel.NewError(semel.CodeStoreUnavailable, nil, "the reply is lost")
	}
	return l.Store.Finish(ctx, c, p)
}

// keysElsewhere is a service whose keys are not beside its payments, and what
// moves their clock on.
func keysElsewhere(t *testing.T) (rg *rig, later func(time.Duration)) {
	t.Helper()
	dir := t.TempDir()
	var shift atomic.Int64
	file := open(t, filepath.Join(dir, "keys.db"))
	assert.NoError(t, sqlstore.Migrate(t.Context(), file))
	keys, err := sqlstore.New(t.Context(), file, sqlstore.Config{
		Hooks: testhook.Hooks{ClockOffset: func() time.Duration { return time.Duration(shift.Load()) }},
	})
	assert.NoError(t, err)
	rg = newRigIn(t, service.Place{
		Business: open(t, filepath.Join(dir, "service.db")), Keys: losing{keys}, KeysSystem: service.Redis,
	}, "")
	return rg, func(d time.Duration) { shift.Add(int64(d)) }
}

func TestWithTheKeysElsewhereARepeatFindsThePaymentWhoseReplyWasNotSaved(t *testing.T) {
	t.Parallel()
	rg, later := keysElsewhere(t)
	lease := fmt.Sprintf(`{"lease":"%v"}`, payments.MaxLease) // nobody takes over before it is wanted
	assert.Equal(t, ask(rg.service, http.MethodPut, "/lease", lease).Code, http.StatusOK)
	first := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, first.Code, http.StatusServiceUnavailable, "%s", first.Body)
	assert.Equal(t, rg.account(t, payments.Keyed), once, "it is paid and nobody was told so")

	later(payments.MaxLease + time.Second)
	paid := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, paid.Code, http.StatusCreated, "%s", paid.Body)
	assert.Equal(t, paid.Header().Get("Idempotent-Replayed"), "", "it ran again")
	assert.Contains(t, rg.logged.String(), `"found":true,"joined":false,"store":"SQLite"`)
	assert.Contains(t, rg.logged.String(), `"event":"takeover","attempt":2`)
	assert.Contains(t, rg.logged.String(), `"store":"Redis","mode":"leased"`)
	var p service.Payment
	assert.NoError(t, json.Unmarshal(paid.Body.Bytes(), &p))
	assert.Equal(t, ask(rg.service, http.MethodGet, "/payments/"+p.ID, "").Body.String(), paid.Body.String(), "the stored payment")
	again := rg.pay(payments.Keyed, "k1", order)
	assert.Equal(t, again.Body.String(), paid.Body.String())
	assert.Equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	assert.Equal(t, rg.account(t, payments.Keyed), once)
}

func TestTwoDemosInOnePlaceHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	place := service.Place{Business: open(t, filepath.Join(t.TempDir(), "service.db"))}
	one, two := newRigIn(t, place, "one"), newRigIn(t, place, "two")
	for _, door := range payments.Doors() {
		first, second := one.pay(door, "k1", order), two.pay(door, "k1", order)
		assert.Equal(t, second.Code, http.StatusCreated)
		assert.Equal(t, second.Header().Get("Idempotent-Replayed"), "", "%s", door)
		assert.True(t, first.Body.String() != second.Body.String(), "two payments at %s", door)
		assert.Equal(t, one.account(t, door), once)
		assert.Equal(t, two.account(t, door), once)
		assert.Equal(t, ask(two.service, http.MethodGet, first.Header().Get("Location"), "").Code, http.StatusNotFound, "another's payment")
	}
	assert.Equal(t, ask(one.service, http.MethodPut, "/orders/o1", `{"item":"mug"}`).Code, http.StatusCreated)
	assert.Equal(t, ask(two.service, http.MethodDelete, "/orders/o1", "").Code, http.StatusNotFound)
	assert.Equal(t, ask(two.service, http.MethodPut, "/orders/o1", `{"item":"cup"}`).Code, http.StatusCreated)
	assert.Equal(t, ask(one.service, http.MethodGet, "/orders/o1", "").Body.String(), `{"item":"mug"}`)
	assert.Equal(t, ask(one.service, http.MethodPut, "/lease", `{"lease":"500ms"}`).Code, http.StatusOK)
	assert.Equal(t, ask(newRigIn(t, place, "one").service, http.MethodGet, "/lease", "").Body.String(), "{\"lease\":\"500ms\"}\n")
	assert.Equal(t, ask(newRigIn(t, place, "two").service, http.MethodGet, "/lease", "").Body.String(), "{\"lease\":\"2s\"}\n")
}

func TestAPlaceKnowsWhoWasThere(t *testing.T) {
	t.Parallel()
	place := service.Place{Business: open(t, filepath.Join(t.TempDir(), "service.db"))}
	assert.NoError(t, place.Prepare(t.Context()))
	assert.NoError(t, place.Prepare(t.Context()), "again")
	assert.NoError(t, place.Register(t.Context(), "one"))
	for name, want := range map[string]bool{"one": true, "two": false} {
		got, err := place.Knows(t.Context(), name)
		assert.NoError(t, err)
		assert.Equal(t, got, want, "it knows %s", name)
	}
}

func TestAServiceStartsBesideOneThatNeverStopsWriting(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "service.db")
	first := open(t, file)
	newRigIn(t, service.Place{Business: first}, "one")
	tx, err := first.Write.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	defer tx.Rollback()
	second := newRigIn(t, service.Place{Business: open(t, file)}, "one")
	assert.Equal(t, ask(second.service, http.MethodGet, "/lease", "").Code, http.StatusOK)
}

func TestWithoutItsDatabaseTheServiceSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	handles := open(t, filepath.Join(t.TempDir(), "service.db"))
	rg := newRigIn(t, service.Place{Business: handles}, "")
	assert.NoError(t, handles.Close())
	for name, w := range map[string]*httptest.ResponseRecorder{
		"with Semel":   rg.pay(payments.Keyed, "k1", order),
		"naive":        rg.pay(payments.Naive, "k1", order),
		"an order":     ask(rg.service, http.MethodPut, "/orders/o1", `{}`),
		"the totals":   ask(rg.service, http.MethodGet, "/totals", ""),
		"a setting":    ask(rg.service, http.MethodPut, "/lease", `{"lease":"1s"}`),
		"no payment":   ask(rg.service, http.MethodGet, "/payments/2e6331f1-af76-84a2-a8b3-099ba85c84db", ""),
		"no order":     ask(rg.service, http.MethodGet, "/orders/o1", ""),
		"not an order": ask(rg.service, http.MethodDelete, "/orders/o1", ""),
	} {
		assert.Equal(t, w.Code, http.StatusServiceUnavailable, "%s", name)
		assert.True(t, w.Header().Get("Retry-After") != "", "Retry-After: %s", name)
	}
	w := rg.pay(payments.Keyless, "", order)
	assert.Equal(t, w.Code, http.StatusServiceUnavailable, "charged and not saved")
	assert.Contains(t, w.Body.String(), `"code":"payment-unsaved"`)
	assert.Equal(t, rg.bankAccount(t, payments.Keyless), payments.Account{Charges: 1, Taken: 2500})
	assert.Equal(t, rg.bankAccount(t, payments.Keyed), payments.Account{})
	assert.Equal(t, rg.bankAccount(t, payments.Naive), payments.Account{})
}

func TestAPlaceThatLacksSomethingIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, filepath.Join(t.TempDir(), "service.db"))
	keys, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	for want, c := range map[string]struct {
		place service.Place
		demo  string
	}{
		"Place.Business is required":   {},
		"Place.KeysSystem is required": {place: service.Place{Business: h, Keys: keys}},
		"Config.Demo has 65 bytes":     {service.Place{Business: h}, strings.Repeat("d", 65)},
	} {
		_, err := service.New(t.Context(), c.place, service.Config{Bank: "127.0.0.1:1", Demo: c.demo, Logger: slog.New(slog.DiscardHandler)})
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}
