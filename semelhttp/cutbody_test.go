package semelhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// net/http reports once that a body broke off, and says EOF from then on.
func TestABrokenBodyIsNotTakenForAWholeOneWhenSomebodyOutsideHasReadTheBreak(t *testing.T) {
	t.Parallel()
	s := newService(t, settings{})
	inner := s.protect(t, semelhttp.Route{}, s.created)
	ended := make(chan struct{}, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(read), r.Body))
		inner.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	assert.NoError(t, err)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: k1\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"sku\"")
	assert.NoError(t, conn.Close())
	<-ended
	assert.Equal(t, s.runCount(), 0, "runs of half a request")
	assert.Equal(t, post(t, srv.Client(), srv.URL, "k1", `{"sku":"A"}`).outcome(), "executed")
}
