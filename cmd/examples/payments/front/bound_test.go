package front_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAPaymentWithAnOverlongNameIsRefusedAtEachDoor(t *testing.T) {
	t.Parallel()
	for _, header := range []string{payments.HeaderCustomer, payments.HeaderOrder} {
		for _, door := range payments.Doors() {
			rg := newRig(t)
			status, body := rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderKey, "a", header, "short", header, strings.Repeat("n", 1025))
			assert.Equal(t, status, http.StatusRequestHeaderFieldsTooLarge, "%s at %s", header, door)
			assert.Contains(t, body, `"code":"header-too-large"`)
			assert.Contains(t, body, header+" has 1025 bytes; the most is 1024")
			got, _ := rg.requests()
			assert.Equal(t, len(got), 0, "requests passed on")
			assert.Equal(t, rg.ledger(t)[door].Orders, int64(0), "orders")
			status, _ = rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderKey, "a", header, strings.Repeat("n", 1024))
			assert.Equal(t, status, http.StatusCreated, "%s of 1024 bytes at %s", header, door)
		}
	}
}

func TestTheLogIsShortWhateverIsSent(t *testing.T) {
	t.Parallel()
	// The page reads no more of the log than this.
	const readable = 1 << 20

	t.Run("of what a client sent it has the beginning", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		long := strings.Repeat("é", 200_000)
		rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a", payments.HeaderCustomer, long, payments.HeaderOrder, long)
		rg.send(t, strings.Repeat("M", 300), "/charges/"+strings.Repeat("p", 300), "")
		entries := rg.log.Entries()
		assert.Equal(t, entries[0].Customer, strings.Repeat("é", 100)+"…")
		assert.Equal(t, entries[0].Order, strings.Repeat("é", 100)+"…")
		assert.Equal(t, entries[1].Path, "/charges/"+strings.Repeat("p", 191)+"…")
		assert.Equal(t, entries[1].Method, strings.Repeat("M", 200)+"…")
	})

	t.Run("a long line is told in a short one", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		rg.send(t, http.MethodGet, "/payments/x", "")
		rg.log.Line(fmt.Sprintf(`{"msg":"a line","request":"1","more":%q}`, strings.Repeat("x", 3000)))
		lines := rg.log.Entries()[0].Lines
		last := lines[len(lines)-1]
		assert.Equal(t, messages(t, lines), []string{"request passed on", "reply passed on", "a line"})
		assert.Contains(t, last, `"bytes_left_out":30`)
		assert.Contains(t, last, `"request":"1"`)
	})

	t.Run("the page can read it with all the lines that it may have", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		long := strings.Repeat("<", 400)
		for i := range 100 {
			rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a", payments.HeaderCustomer, long, payments.HeaderOrder, long)
			for range 45 {
				rg.log.Line(fmt.Sprintf(`{"msg":"a line","request":"%d","more":%q}`, i+1, strings.Repeat("&", 1900)))
			}
		}
		_, body := rg.send(t, http.MethodGet, "/demo/log", "")
		assert.True(t, len(body) < readable, "the log has %d bytes", len(body))
		entries := rg.log.Entries()
		assert.Equal(t, entries[len(entries)-1].ID, int64(100), "the latest request")
		assert.Equal(t, len(entries[len(entries)-1].Lines), 40, "its lines")
		for i := 1; i < len(entries); i++ {
			assert.Equal(t, entries[i].ID, entries[i-1].ID+1)
		}
	})

	t.Run("it has a hundred requests of the ordinary kind", func(t *testing.T) {
		t.Parallel()
		rg := newRig(t)
		for i := range 100 {
			rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "a")
			for range 10 {
				rg.log.Line(fmt.Sprintf(`{"msg":"a line","request":"%d","more":%q}`, i+1, strings.Repeat("x", 250)))
			}
		}
		assert.Equal(t, len(rg.log.Entries()), 100)
		w := httptest.NewRecorder()
		rg.front.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/demo/log", nil))
		assert.True(t, bytes.Count(w.Body.Bytes(), []byte(`a line`)) == 1000, "all the lines")
	})
}
