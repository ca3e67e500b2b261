package integration

import (
	"context"
	"crypto/tls"
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

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// shop is a service over a store. Each run of its handlers counts, and leaves
// one row of the business: in the transaction, in leased mode beside it.
type shop struct {
	shopStore

	cable *cable // to the server, if it can be made bad
	on    shopWay
	guard *semel.Guard
	mw    *semelhttp.Middleware
	runs  atomic.Int64
}

// shopSettings are what a test changes about a shop.
type shopSettings struct {
	recovery semel.Recovery      // Resume(Forever) unless given
	caller   semelhttp.ScopeFunc // shopCaller unless given
	guard    semel.Config
	mw       semelhttp.Config
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

// newShop returns a shop with an empty store.
func newShop(t testing.TB, on shopWay, set shopSettings) *shop {
	t.Helper()
	return newShopOn(t, on.kind.empty(on.whole, t), on, set)
}

func newShopOn(t testing.TB, store shopStore, on shopWay, set shopSettings) *shop {
	t.Helper()
	s, err := openShop(store, set)
	assert.NoError(t, err)
	s.shopStore, s.on = store, on
	return s
}

// openShop returns a shop without what only a test needs.
func openShop(store semel.Store, set shopSettings) (*shop, error) {
	set.guard.Logger, set.mw.Logger = unheard, unheard
	if set.recovery == (semel.Recovery{}) {
		set.recovery = semel.Resume(semel.Forever)
	}
	if set.caller == nil {
		set.caller = shopCaller
	}
	s := &shop{}
	var err error
	if s.guard, err = semel.New(store, set.recovery, set.guard); err != nil {
		return nil, err
	}
	s.mw, err = semelhttp.New(s.guard, set.caller, set.mw)
	return s, err
}

// protect protects h as the route, named "orders" unless it has a name.
func (s *shop) protect(t testing.TB, route semelhttp.Route, h http.HandlerFunc) http.Handler {
	t.Helper()
	protected, err := s.route(route, h)
	assert.NoError(t, err)
	return protected
}

func (s *shop) route(route semelhttp.Route, h http.HandlerFunc) (http.Handler, error) {
	return protectIn(s.on.mode, s.mw, route, h)
}

// protectIn protects h as a route whose effects are all in the transaction of
// the mode, if it has one.
func protectIn(mode semel.Mode, mw *semelhttp.Middleware, route semelhttp.Route, h http.HandlerFunc) (http.Handler, error) {
	if route.Name == "" {
		route.Name = "orders"
	}
	route.Mode, route.AllInTx = mode, mode == semel.Joined
	return mw.Protect(h, route)
}

// sell is the side effect, in the way of the mode: one row with the key. It
// returns the number of the run. A handler that finds the writer taken for
// longer than anybody waits has done nothing, and says so: the run does not
// count, and the handler goes no further.
func (s *shop) sell(t testing.TB, w http.ResponseWriter, r *http.Request) (run int64, sold bool) {
	t.Helper()
	ctx := r.Context()
	op, _ := semel.OperationFrom(ctx)
	if err := s.shopStore.sell(ctx, s.on.mode, op.Key); err != nil {
		if !isBusy(err) {
			t.Errorf("after %d runs: %v", s.runs.Load(), err)
		}
		semel.DeclareNotApplied(ctx)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return 0, false
	}
	return s.runs.Add(1), true
}

// isBusy tells a writer that was taken from every other fault.
func isBusy(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()&0xff == sqlitelib.SQLITE_BUSY
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// created is the usual handler.
func (s *shop) created(t testing.TB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, sold := s.sell(t, w, r)
		if !sold {
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, n))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "{\"id\":%d}\n", n)
	}
}

// sold checks how often the handler ran, that each run left its row, and that
// no request was answered as done whose row is not there.
func (s *shop) sold(t testing.TB, want int) {
	t.Helper()
	assert.Equal(t, s.runs.Load(), int64(want), "runs")
	rows := s.rows(t)
	sum := 0
	for _, n := range rows {
		sum += n
	}
	assert.Equal(t, sum, want, "rows")
	for _, rec := range s.records(t, semel.StateDone) {
		assert.True(t, rec.Reply.Status >= 400 || rows[rec.Key] > 0, "key %s is done and has its row", rec.Key)
	}
}

// records are those in the states that are not expired.
func (s *shop) records(t testing.TB, states ...semel.State) []semel.Record {
	t.Helper()
	all, err := s.List(t.Context(), semel.ListParams{States: states, Limit: 1000})
	assert.NoError(t, err)
	return all
}

// The protocols that a case can be sent over.
const (
	overHTTP1 = "HTTP/1.1"
	overHTTP2 = "HTTP/2.0"
)

// server is where requests go, and who sends them.
type server struct {
	url    string
	client *http.Client
}

// serve serves h on a real server. The client sees redirects and encodings as
// they are, and has a connection for each of its requests at once.
func serve(t testing.TB, proto string, h http.Handler) server {
	t.Helper()
	return serveWith(t, proto, h, nil)
}

func serveWith(t testing.TB, proto string, h http.Handler, secure *tls.Config) server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.TLS = secure
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.EnableHTTP2 = proto == overHTTP2
	srv.StartTLS()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport, ok := client.Transport.(*http.Transport)
	assert.True(t, ok, "the server's client has no http.Transport")
	transport.DisableCompression, transport.MaxIdleConnsPerHost = true, 64
	t.Cleanup(srv.Close)
	return server{srv.URL, client}
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
func try(ctx context.Context, srv server, o ask) (answer, error) {
	method := o.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, srv.url+o.target, strings.NewReader(o.body))
	if err != nil {
		return answer{}, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"K1"}}
	maps.Copy(req.Header, o.header)
	req.Host = req.Header.Get("Host")
	resp, err := srv.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{Response: resp, text: string(text)}, err
}

// send is try that must succeed. It may be called from any goroutine: a
// failure gives an empty answer.
func send(t testing.TB, srv server, o ask) answer {
	t.Helper()
	for tries := 0; ; tries++ {
		a, err := try(context.Background(), srv, o)
		if err != nil {
			t.Errorf("%s %s: %v", o.method, o.target, err)
			return answer{Response: &http.Response{}}
		}
		// On a machine with much else to do the one writer may be taken for
		// longer than the store waits, or the handler. Nothing has taken effect
		// then; a client asks again.
		if a.told() != "503 released" || tries == maxTries {
			return a
		}
	}
}

// maxTries is how often a request that found the store busy is sent again.
const maxTries = 10

// sending is send on a goroutine of its own.
func sending(t testing.TB, srv server, o ask) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- send(t, srv, o) }()
	return got
}
