package semelhttp_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

// What happens to a large reply where no temporary file can be made.
func TestNoRoomForAReply(t *testing.T) { //nolint:paralleltest // the environment is that of the process.
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	text := strings.Repeat("x", 3000)
	large := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			openTx(r.Context())
			w.Header().Set("Content-Length", "3000")
			w.WriteHeader(status)
			n, err := io.WriteString(w, text)
			assert.Equal(t, n, len(text))
			assert.NoError(t, err)
		}
	}
	overLimit := semelhttp.Config{MaxReplyBody: 1000}
	overBudget := semelhttp.Config{MaxRequestBody: 4000, MaxReplyBody: 4000, ByteBudget: 4000} // the request takes it all

	t.Run("The operation is done all the same: its first client is told so, and nothing runs again", func(t *testing.T) {
		for _, cfg := range []semelhttp.Config{overLimit, overBudget} {
			for _, mode := range []semel.Mode{semel.Leased, semel.Joined} {
				synctest.Test(t, func(t *testing.T) {
					var log lines
					cfg.Logger = log.logger()
					s := newService(t, settings{mw: cfg})
					srv := memhttp.New(t, s.protect(t, semelhttp.Route{Mode: mode}, func(w http.ResponseWriter, r *http.Request) {
						s.ran()
						large(http.StatusCreated)(w, r)
					}))
					for _, outcome := range []string{"executed", "reply-not-kept", "reply-not-kept"} {
						got := post(t, srv.Client(), srv.URL(), "k1", "x")
						assert.Equal(t, got.StatusCode, http.StatusConflict)
						assert.Equal(t, got.outcome(), outcome)
						assert.Contains(t, got.text, `"code":"reply-not-kept","retry":false,"originalStatus":201`)
					}
					assert.Equal(t, s.runCount(), 1, "runs in %v mode", mode)
					if mode == semel.Joined {
						assert.Equal(t, s.store.transactions(), "committed")
					}
					synctest.Wait()
					logged := log.take()
					assert.Contains(t, logged, "level=WARN")
					assert.Contains(t, logged, "no such file or directory")
				})
			}
		}
	})

	t.Run("Of an operation whose end is unknown the client sees a broken connection", func(t *testing.T) {
		s := newService(t, settings{recovery: semel.Hold(), mw: overLimit})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, large(http.StatusInternalServerError)))
		_, err := do(srv.Client(), http.MethodPost, srv.URL(), "k1", "")
		assert.True(t, err != nil, "the connection breaks")
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "unknown")
	})

	t.Run("A part of it is not sent as a stream", func(t *testing.T) {
		s := newService(t, settings{mw: overLimit})
		srv := memhttp.New(t, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, text)
			assert.True(t, http.NewResponseController(w).Flush() != nil, "Flush says that it cannot")
		}))
		assert.Contains(t, post(t, srv.Client(), srv.URL(), "k1", "").text, `"originalStatus":200`)
		assert.Equal(t, post(t, srv.Client(), srv.URL(), "k1", "").outcome(), "reply-not-kept")
	})
}
