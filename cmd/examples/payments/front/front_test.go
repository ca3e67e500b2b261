package front_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

const order = `{"amount":2500,"currency":"USD","recipientId":"r_123"}`

// backend stands in for the service and the bank, and remembers what reached
// it.
type backend struct {
	mu      sync.Mutex
	got     []*http.Request
	bodies  []string
	respond http.HandlerFunc
	dying   atomic.Int64 // how many questions for its totals yet meet their end
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.got = append(b.got, r)
	b.bodies = append(b.bodies, string(body))
	b.mu.Unlock()
	switch {
	case r.URL.Path == "/totals" && b.dying.Add(-1) >= 0:
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/totals":
		payments.WriteJSON(w, http.StatusOK, payments.Totals{
			payments.Keyed.AccountOf(payments.Anonymous): {Payments: 7, Charges: 8, Charged: 6, Taken: 9},
			payments.Keyed.AccountOf(payments.Crowd):     {Payments: 70, Charges: 80, Charged: 60, Taken: 90},
		})
	case b.respond != nil:
		b.respond(w, r)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

func (b *backend) requests() ([]*http.Request, []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got, b.bodies
}

// rig is a front before a backend, on real connections.
type rig struct {
	*backend
	url    string
	orders *sqlstore.Handles
	log    *front.Log
	front  *front.Front
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, filepath.Join(t.TempDir(), "orders.db"))
}

func newRigOn(t *testing.T, file string) *rig {
	t.Helper()
	orders, err := sqlstore.OpenSQLite("sqlite", file)
	assert.NoError(t, err)
	t.Cleanup(func() { orders.Close() })
	rg := &rig{backend: &backend{}, orders: orders, log: &front.Log{}}
	behind := httptest.NewServer(rg.backend)
	t.Cleanup(behind.Close)
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", behind.Listener.Addr().String())
	}
	f, err := front.New(t.Context(), front.Config{
		Service: dial,
		Bank:    dial,
		Orders:  orders.Write,
		Page:    http.NotFoundHandler(),
		Crowd:   http.NotFoundHandler(),
		Log:     rg.log,
		Logger:  slog.New(slog.DiscardHandler),
	})
	assert.NoError(t, err)
	server := httptest.NewUnstartedServer(f.Handler())
	server.Config.SetKeepAlivesEnabled(false)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	rg.url, rg.front = server.URL, f
	return rg
}

// send sends one request; header names and values alternate. The status is
// zero when there was no answer.
func (rg *rig) send(t *testing.T, method, path, body string, header ...string) (status int, reply string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, rg.url+path, strings.NewReader(body))
	assert.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(got)
}

func (rg *rig) arm(t *testing.T, body string) {
	t.Helper()
	status, reply := rg.send(t, http.MethodPost, "/demo/faults", body)
	assert.Equal(t, status, http.StatusOK, "%s", reply)
}

func TestAFaultThatNobodyKnowsIsRefusedAndTheArmedOneWaitsForTheNext(t *testing.T) {
	t.Parallel()
	for _, door := range payments.Doors() {
		rg := newRig(t)
		rg.arm(t, `{"fault":"request-lost"}`)
		for _, name := range []string{"earthquake", "Slow", "none,slow", strings.Repeat("x", 3000)} {
			status, reply := rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderKey, "k", payments.HeaderFault, name)
			assert.Equal(t, status, http.StatusBadRequest, "%s at %s", name, door)
			assert.Contains(t, reply, `"code":"fault-invalid","field":"X-Demo-Fault"`)
			assert.Contains(t, reply, "it must be none or one of request-lost, killed-before-charge, bank-error, slow, killed-after-charge, reply-lost")
			assert.True(t, len(reply) < 1024, "%d bytes answer it", len(reply))
		}
		got, _ := rg.requests()
		assert.Equal(t, len(got), 0, "requests behind the front at %s", door)
		assert.Equal(t, rg.ledger(t)[door].Orders, int64(0), "orders at %s", door)
		status, _ := rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderFault, payments.NoFaultName)
		assert.Equal(t, status, http.StatusCreated, "one that asks for none at %s", door)
		status, _ = rg.send(t, http.MethodPost, door.Path(), order, payments.HeaderFault, "")
		assert.Equal(t, status, 0, "one that asks for nothing at %s", door)
	}
}

func TestARequestReachesTheServiceByteForByte(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	body := "{ \"amount\" : 2500 }\n"
	rg.send(t, http.MethodPost, "/payments/a%2Fb%20c?q=1;2&r=%zz", body,
		payments.HeaderKey, `"one"`, payments.HeaderKey, "two", "X-Forwarded-For", "192.0.2.1")
	got, bodies := rg.requests()
	assert.Equal(t, len(got), 1)
	assert.Equal(t, got[0].RequestURI, "/payments/a%2Fb%20c?q=1;2&r=%zz")
	assert.Equal(t, bodies[0], body)
	assert.Equal(t, got[0].Header.Values(payments.HeaderKey), []string{`"one"`, "two"})
}

func TestInternalHeadersFromOutsideAreDropped(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/payments", "/charges"} {
		rg := newRig(t)
		rg.send(t, http.MethodPost, path, order,
			payments.InternalFault, "killed-after-charge", payments.InternalAccount, "keyed", payments.InternalRequest, "99")
		got, _ := rg.requests()
		assert.Equal(t, got[0].Header.Get(payments.InternalFault), "", "fault at %s", path)
		assert.Equal(t, got[0].Header.Get(payments.InternalAccount), "", "door at %s", path)
		assert.Equal(t, got[0].Header.Get(payments.InternalRequest), "1", "number at %s", path)
	}
}

func TestALostRequestNeverReachesTheServiceAndIsNotAnswered(t *testing.T) {
	t.Parallel()
	for _, door := range payments.Doors() {
		rg := newRig(t)
		rg.arm(t, `{"fault":"request-lost"}`)
		status, _ := rg.send(t, http.MethodPost, door.Path(), order)
		assert.Equal(t, status, 0, "status at %s", door)
		got, _ := rg.requests()
		assert.Equal(t, len(got), 0, "requests behind the front at %s", door)
		status, _ = rg.send(t, http.MethodPost, door.Path(), order)
		assert.Equal(t, status, http.StatusCreated, "the next one at %s", door)
	}
}

func TestALostReplyIsOfARequestThatReachedTheService(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.arm(t, `{"fault":"reply-lost","times":2}`)
	for range 2 {
		status, _ := rg.send(t, http.MethodPost, "/payments", order)
		assert.Equal(t, status, 0)
	}
	status, _ := rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, status, http.StatusCreated)
	got, _ := rg.requests()
	assert.Equal(t, len(got), 3, "requests behind the front")
}

func TestOtherFaultsAreToldToTheService(t *testing.T) {
	t.Parallel()
	for _, fault := range []payments.Fault{payments.KilledBeforeCharge, payments.KilledAfterCharge, payments.Slow, payments.BankError} {
		rg := newRig(t)
		rg.arm(t, `{"fault":"`+string(fault)+`"}`)
		rg.send(t, http.MethodPost, "/unsafe/payments", order)
		rg.send(t, http.MethodPost, "/unsafe/payments", order)
		got, _ := rg.requests()
		assert.Equal(t, got[0].Header.Get(payments.InternalFault), string(fault))
		assert.Equal(t, got[1].Header.Get(payments.InternalFault), "", "after %s", fault)
	}
}

func TestAFaultMeetsPaymentsAndNothingElse(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.arm(t, `{"fault":"request-lost"}`)
	for _, c := range [][2]string{
		{http.MethodGet, "/demo/ledger"},
		{http.MethodGet, "/demo/log"},
		{http.MethodGet, "/demo/faults"},
		{http.MethodGet, "/payments/x"},
		{http.MethodPut, "/orders/o1"},
		{http.MethodPost, "/charges"},
		{http.MethodGet, "/"},
		{http.MethodGet, "/.well-known/idempotency"},
		{http.MethodPost, "/payments/"},
	} {
		status, _ := rg.send(t, c[0], c[1], order)
		assert.True(t, status != 0, "an answer to %s %s", c[0], c[1])
	}
	status, _ := rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, status, 0, "status of the payment")
}

func TestAServiceThatDiesHalfWayIsNoAnswerAndNotAskedAgain(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"with a body": order, "with an empty body": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rg := newRig(t)
			// The first request leaves a connection that could be used again.
			rg.send(t, http.MethodPost, "/payments", body, payments.HeaderKey, "k0")
			rg.respond = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
			status, _ := rg.send(t, http.MethodPost, "/payments", body, payments.HeaderKey, "k1")
			assert.Equal(t, status, 0)
			got, _ := rg.requests()
			assert.Equal(t, len(got), 2, "requests behind the front")
		})
	}
}

func TestAReplyThatBreaksOffIsNotPassedOnAsWhole(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.respond = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	}
	status, _ := rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, status, 0)
}

func TestTheMetricsAreTheServicesAndNotInTheLog(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.respond = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "semel_requests_total 1\n") }
	rg.arm(t, `{"fault":"request-lost","times":1}`)
	status, body := rg.send(t, http.MethodGet, "/metrics", "", "Accept", "application/openmetrics-text", payments.InternalRequest, "7")
	assert.Equal(t, status, http.StatusOK)
	assert.Equal(t, body, "semel_requests_total 1\n")
	got, _ := rg.requests()
	assert.Equal(t, got[0].URL.Path, "/metrics")
	assert.Equal(t, got[0].Header.Get("Accept"), "application/openmetrics-text")
	assert.Equal(t, got[0].Header.Get(payments.InternalRequest), "0", "the number that the front gives")
	assert.Equal(t, len(rg.log.Entries()), 0)
}

func TestABrowserTakesNoAnswerOfTheDemoForAPage(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for _, path := range []string{
		"/demo/log", "/demo/ledger", "/demo/faults", "/demo/bank", "/demo/service", "/demo/crowd", "/demo/crowd/ledger", "/demo/nothing", "/demo/changes", "/metrics",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rg.url+path, nil)
		assert.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		assert.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, resp.Header.Values("X-Content-Type-Options"), []string{"nosniff"}, "%s", path)
		assert.Equal(t, resp.Header.Values("Content-Security-Policy"), []string{"default-src 'none'"}, "%s", path)
	}
}

func TestABodyOverTheLimitIsRefusedAndNotPassedOn(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	status, reply := rg.send(t, http.MethodPost, "/payments", strings.Repeat(" ", payments.MaxBody+1))
	assert.Equal(t, status, http.StatusRequestEntityTooLarge)
	assert.Contains(t, reply, "body-too-large")
	got, _ := rg.requests()
	assert.Equal(t, len(got), 0, "requests behind the front")
}

func TestABadFaultIsRefusedByName(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for body, want := range map[string]string{
		``:                                 "the body must be",
		`{`:                                "the body must be",
		`{"times":1}`:                      "fault is missing; one of request-lost",
		`{"fault":null}`:                   "fault is missing",
		`{"fault":""}`:                     "it must be one of request-lost",
		`{"fault":"earthquake"}`:           `fault is \"earthquake\"; it must be one of request-lost`,
		`{"fault":"slow","times":-1}`:      "times is -1; it must be from 0 to 1000",
		`{"fault":"slow","times":1001}`:    "times is 1001",
		`{"fault":"slow","times":"2"}`:     "times",
		`{"fault":"slow","times":1.5}`:     "times",
		`{"fault":"slow","for":1}`:         "for",
		`{"fault":"slow","fault":"slow"}`:  "duplicate",
		`[{"fault":"slow","times":1}]`:     "the body must be",
		`{"fault":"slow","times":1} extra`: "the body must be",
	} {
		status, reply := rg.send(t, http.MethodPost, "/demo/faults", body)
		assert.Equal(t, status, http.StatusBadRequest, "status of %s", body)
		assert.Contains(t, reply, want, "reply to %s", body)
		assert.Contains(t, reply, "fault-invalid", "reply to %s", body)
	}
	status, _ := rg.send(t, http.MethodPost, "/payments", order)
	assert.Equal(t, status, http.StatusCreated, "nothing is armed")
}

func TestAFaultCanBeSwitchedOffAgain(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]func(*testing.T, *rig){
		"by DELETE":     func(t *testing.T, rg *rig) { t.Helper(); rg.send(t, http.MethodDelete, "/demo/faults", "") },
		"by zero times": func(t *testing.T, rg *rig) { t.Helper(); rg.arm(t, `{"fault":"slow","times":0}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rg := newRig(t)
			rg.arm(t, `{"fault":"request-lost","times":5}`)
			_, armed := rg.send(t, http.MethodGet, "/demo/faults", "")
			assert.Contains(t, armed, `"armed":{"fault":"request-lost","times":5}`)
			off(t, rg)
			status, _ := rg.send(t, http.MethodPost, "/payments", order)
			assert.Equal(t, status, http.StatusCreated)
		})
	}
}

func TestAnotherSitesPageCannotSwitchAFaultOn(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	status, _ := rg.send(t, http.MethodPost, "/demo/faults", `{"fault":"slow"}`, "Origin", "https://elsewhere.example")
	assert.Equal(t, status, http.StatusForbidden)
}

func TestTheLogHasEachRequestWithItsLinesAndNoKey(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	rg.respond = func(w http.ResponseWriter, r *http.Request) {
		rg.log.Line(`{"msg":"a line","request":"` + r.Header.Get(payments.InternalRequest) + `"}`)
		rg.log.Line(`not JSON`)
		rg.log.Line(`{"msg":"of nobody"}`)
		w.Header().Set("Semel-Outcome", "executed")
		w.WriteHeader(http.StatusCreated)
	}
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "canary-7f3a")
	rg.arm(t, `{"fault":"reply-lost"}`)
	rg.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, "canary-7f3a")
	_, body := rg.send(t, http.MethodGet, "/demo/log", "")
	assert.True(t, !strings.Contains(body, "canary"), "the key is not in %s", body)
	var entries []front.Entry
	assert.NoError(t, json.Unmarshal([]byte(body), &entries))
	assert.Equal(t, len(entries), 2)
	assert.Equal(t, messages(t, entries[0].Lines), []string{"request passed on", "a line", "reply passed on"})
	assert.Equal(t, entries[0].Lines[1], `{"msg":"a line","request":"1"}`)
	assert.Equal(t, messages(t, entries[1].Lines), []string{"request passed on", "a line", "reply lost"})
	assert.Equal(t, entries[0].Status, http.StatusCreated)
	assert.Equal(t, entries[0].Outcome, "executed")
	assert.Equal(t, entries[1].Status, 0, "status of the request without an answer")
	assert.Equal(t, entries[1].Fault, payments.ReplyLost)
	assert.Equal(t, entries[1].Key, entries[0].Key, "digest")
	assert.True(t, entries[1].Ended, "the request has ended")
}

func TestTheLogForgetsTheOldest(t *testing.T) {
	t.Parallel()
	rg := newRig(t)
	for range 103 {
		rg.send(t, http.MethodGet, "/payments/x", "")
	}
	entries := rg.log.Entries()
	assert.Equal(t, len(entries), 100)
	assert.Equal(t, entries[0].ID, int64(4))
	assert.Equal(t, entries[99].ID, int64(103))
}

func TestAProcessThatIsNotUpIsAnswered503(t *testing.T) {
	t.Parallel()
	f := newFront(t, &front.Log{})
	for _, path := range []string{"/payments", "/charges", "/demo/ledger"} {
		method := http.MethodPost
		if path == "/demo/ledger" {
			method = http.MethodGet
		}
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(order)))
		assert.Equal(t, w.Code, http.StatusServiceUnavailable, "%s", path)
		assert.Equal(t, w.Header().Get("Retry-After"), "1", "%s", path)
	}
}

func TestAFrontNeedsAllItsParts(t *testing.T) {
	t.Parallel()
	_, err := front.New(t.Context(), front.Config{})
	assert.True(t, err != nil, "an error")
}

// messages returns what the lines say.
func messages(t *testing.T, lines []string) []string {
	t.Helper()
	out := make([]string, len(lines))
	for i, line := range lines {
		var said struct {
			Msg string `json:"msg"`
		}
		assert.NoError(t, json.Unmarshal([]byte(line), &said))
		out[i] = said.Msg
	}
	return out
}
