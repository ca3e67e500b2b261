package memhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
)

func TestServer(t *testing.T) {
	t.Parallel()
	t.Run("A server in memory runs on the clock of its bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			srv := memhttp.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Hour)
				io.Copy(w, r.Body)
			}))
			resp, err := srv.Client().Post(srv.URL(), "text/plain", strings.NewReader("hello"))
			assert.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, string(body), "hello")
			assert.Equal(t, time.Since(began), time.Hour)
		})
	})
}
