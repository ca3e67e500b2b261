package service_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/internal/assert"
)

func TestTheLeaseCanBeSetAndOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "service.db")
	start := func() http.Handler {
		s, err := service.New(t.Context(), service.Place{Business: open(t, file)}, service.Config{Bank: "127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
		assert.NoError(t, err)
		return s.Handler()
	}
	first := start()
	assert.Equal(t, ask(first, http.MethodGet, "/lease", "").Body.String(), "{\"lease\":\"2s\"}\n")
	w := ask(first, http.MethodPut, "/lease", `{"lease":"500ms"}`)
	assert.Equal(t, w.Code, http.StatusOK)
	assert.Equal(t, w.Body.String(), "{\"lease\":\"500ms\"}\n")
	assert.Equal(t, ask(start(), http.MethodGet, "/lease", "").Body.String(), "{\"lease\":\"500ms\"}\n", "after a restart")
}

func TestTheLeaseThatIsKeptIsTheOneThatHolds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "service.db")
	start := func() http.Handler {
		s, err := service.New(t.Context(), service.Place{Business: open(t, file)}, service.Config{Bank: "127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
		assert.NoError(t, err)
		return s.Handler()
	}
	s := start()
	for round := range 40 {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				body := fmt.Sprintf(`{"lease":"%v"}`, time.Duration(5000+50*round+i)*time.Millisecond)
				w := ask(s, http.MethodPut, "/lease", body)
				assert.Equal(t, w.Body.String(), body+"\n")
			})
		}
		for range 4 {
			all.Go(func() {
				w := ask(s, http.MethodPost, payments.Keyed.Path(), order, payments.HeaderKey, rand.Text())
				// So many writers may be too many for a slow machine.
				assert.True(t, w.Code == http.StatusBadGateway || w.Code == http.StatusServiceUnavailable, "there is no bank, and the answer is %d", w.Code)
			})
		}
		all.Wait()
		held := ask(s, http.MethodGet, "/lease", "").Body.String()
		assert.Equal(t, ask(start(), http.MethodGet, "/lease", "").Body.String(), held, "after a restart")
	}
}

func TestALeaseThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for _, body := range []string{``, `[]`, `{"lease":2}`, `{"lease":"2"}`, `{"lease":"99ms"}`, `{"lease":"30.001s"}`, `{"lease":"-1s"}`, `{"least":"1s"}`} {
		w := ask(rg.service, http.MethodPut, "/lease", body)
		assert.Equal(t, w.Code, http.StatusBadRequest, "%s", body)
		assert.Contains(t, w.Body.String(), `"code":"setting-invalid"`)
	}
	assert.Equal(t, ask(rg.service, http.MethodGet, "/lease", "").Body.String(), "{\"lease\":\"2s\"}\n")
}

func TestEachThingThatTheStoreSaysHasALineOfItsRequest(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.pay(payments.Keyed, "k1", order, payments.InternalRequest, "41")
	logged := rg.logged.String()
	for _, want := range []string{
		`"msg":"semel: event","event":"claimed","attempt":1`, `"msg":"asks the bank"`, `"msg":"the bank answered"`, `"msg":"paid"`,
		`"msg":"semel: event","event":"done","attempt":1`,
	} {
		assert.Contains(t, logged, want)
	}
	rg.pay(payments.Naive, "k2", order, payments.InternalRequest, "42")
	rg.pay(payments.Naive, "k2", order, payments.InternalRequest, "43")
	logged = rg.logged.String()
	assert.Contains(t, logged, `"msg":"looked for the key","door":"naive","found":false,"store":"SQLite","request":"42"`)
	assert.Contains(t, logged, `"msg":"saved the key","door":"naive","status":201,"store":"SQLite","request":"42"`)
	assert.Contains(t, logged, `"msg":"looked for the key","door":"naive","found":true,"store":"SQLite","request":"43"`)
}
