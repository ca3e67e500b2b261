package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// shop is a service over a SQLite store. Each run of its handlers counts, and
// leaves one row of the business table: in joined mode in the transaction, in
// leased mode beside it.
type shop struct {
	*sqliteStore

	mode  semel.Mode
	guard *semel.Guard
	mw    *semelhttp.Middleware
	runs  atomic.Int64
}

// shopSettings are what a test changes about a shop.
type shopSettings struct {
	guard semel.Config
	mw    semelhttp.Config
}

var unheard = slog.New(slog.DiscardHandler)

const shopScope = "shop:anonymous"

// shopCaller takes the caller from the session, or else from Authorization.
func shopCaller(r *http.Request) (string, error) {
	if session, err := r.Cookie("session"); err == nil {
		return "session:" + session.Value, nil
	}
	switch caller := r.Header.Get("Authorization"); caller {
	case "":
		return shopScope, nil
	case "nobody":
		return "", errors.New("no caller")
	default:
		return "shop:" + caller, nil
	}
}

func newShop(t testing.TB, mode semel.Mode, set shopSettings) *shop {
	t.Helper()
	return newShopOn(t, newSQLite(t), mode, set)
}

func newShopOn(t testing.TB, store *sqliteStore, mode semel.Mode, set shopSettings) *shop {
	t.Helper()
	set.guard.Logger, set.mw.Logger = unheard, unheard
	s := &shop{sqliteStore: store, mode: mode, guard: newGuard(t, store, set.guard)}
	var err error
	s.mw, err = semelhttp.New(s.guard, shopCaller, set.mw)
	assert.NoError(t, err)
	return s
}

// protect protects h as the route, named "orders" unless it has a name.
func (s *shop) protect(t testing.TB, route semelhttp.Route, h http.HandlerFunc) http.Handler {
	t.Helper()
	if route.Name == "" {
		route.Name = "orders"
	}
	route.Mode, route.AllInTx = s.mode, s.mode == semel.Joined
	protected, err := s.mw.Protect(h, route)
	assert.NoError(t, err)
	return protected
}

// sell is the side effect, in the way of the mode. It returns the number of
// the run.
func (s *shop) sell(ctx context.Context, t testing.TB) int64 {
	t.Helper()
	n := s.runs.Add(1)
	if s.mode == semel.Joined {
		if err := pay(ctx); err != nil {
			t.Errorf("run %d: %v", n, err)
		}
		return n
	}
	if _, err := s.handles.Write.ExecContext(ctx, insertPayment, "paid"); err != nil {
		t.Errorf("run %d: %v", n, err)
	}
	return n
}

// created is the usual handler.
func (s *shop) created(t testing.TB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := s.sell(r.Context(), t)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, n))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "{\"id\":%d}\n", n)
	}
}

// sold checks how often the handler ran, and that each run left its row.
func (s *shop) sold(t testing.TB, want int) {
	t.Helper()
	assert.Equal(t, s.runs.Load(), int64(want), "runs")
	assert.Equal(t, s.payments(t), want, "rows")
}

// The protocols that a case can be sent over.
const (
	overHTTP1 = "HTTP/1.1"
	overHTTP2 = "HTTP/2.0"
)

// serve serves h on a real server. The client sees redirects and encodings as
// they are, and has a connection for each of its requests at once.
func serve(t testing.TB, proto string, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.EnableHTTP2 = proto == overHTTP2
	srv.StartTLS()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport, ok := client.Transport.(*http.Transport)
	assert.True(t, ok, "the server's client has no http.Transport")
	transport.DisableCompression, transport.MaxIdleConnsPerHost = true, 64
	t.Cleanup(srv.Close)
	return srv
}

// ask is a request. Zero means POST / with key K1 and a body of JSON.
type ask struct {
	method, target, body string
	header               http.Header // names are sent as they are spelled
}

// with returns o with one more header.
func (o ask) with(name string, values ...string) ask {
	h := o.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h[name] = values
	o.header = h
	return o
}

func (o ask) keyed(key string) ask { return o.with("Idempotency-Key", key) }

// answer is a whole response.
type answer struct {
	*http.Response

	text string
}

func (a answer) outcome() string { return a.Header.Get("Semel-Outcome") }

// told is status and outcome in one, for comparing.
func (a answer) told() string { return fmt.Sprint(a.StatusCode, " ", a.outcome()) }

// try sends o and reads the whole answer.
func try(ctx context.Context, srv *httptest.Server, o ask) (answer, error) {
	method := o.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+o.target, strings.NewReader(o.body))
	if err != nil {
		return answer{}, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"K1"}}
	maps.Copy(req.Header, o.header)
	req.Host = req.Header.Get("Host")
	resp, err := srv.Client().Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{Response: resp, text: string(text)}, err
}

// send is try that must succeed. It may be called from any goroutine: a
// failure gives an empty answer.
func send(t testing.TB, srv *httptest.Server, o ask) answer {
	t.Helper()
	for tries := 0; ; tries++ {
		a, err := try(context.Background(), srv, o)
		if err != nil {
			t.Errorf("%s %s: %v", o.method, o.target, err)
			return answer{Response: &http.Response{}}
		}
		// On a machine with much else to do the one writer may be taken for
		// longer than the store waits. Nothing has run then; a client asks
		// again.
		if a.told() != "503 released" || tries == maxTries {
			return a
		}
	}
}

// maxTries is how often a request that found the store busy is sent again.
const maxTries = 10

// sending is send on a goroutine of its own.
func sending(t testing.TB, srv *httptest.Server, o ask) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- send(t, srv, o) }()
	return got
}
