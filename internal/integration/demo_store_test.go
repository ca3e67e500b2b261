package integration

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

// scriptsAtOnce is how many demos play a script at a time: they mostly wait.
const scriptsAtOnce = 4

func TestEveryScriptHoldsOnEveryServer(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	said, _, _ := runDemo(t, program, "", "--script=none")
	_, names, ok := strings.Cut(said, "there are ")
	assert.True(t, ok, "it lists the scripts: %s", said)
	names, _, _ = strings.Cut(names, " and all")
	var all sync.WaitGroup
	room := make(chan struct{}, scriptsAtOnce)
	for name, server := range held(demoServers, "PostgreSQL") {
		url := server.url(t)
		for script := range strings.SplitSeq(names, ", ") {
			all.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				errs, out, code := runDemo(t, program, url, "--script="+script, "--seed=7", "--json")
				var report struct {
					Script string
					Holds  bool
				}
				err := json.Unmarshal([]byte(out), &report)
				if err != nil || code != 0 || report.Script != script || !report.Holds {
					t.Errorf("%s on %s: got exit code %d, want 0\n%s%s", script, name, code, out, errs)
				}
			})
		}
	}
	all.Wait()
}

// runDemo runs a demo to its end, over the store that a URL names.
func runDemo(t *testing.T, program, url string, args ...string) (stderr, stdout string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"demo", "--no-browser", "--addr=127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), storeVariable+"="+url)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Errorf("%v: %v", args, err)
		return "", "", -1
	}
	return errs.String(), out.String(), cmd.ProcessState.ExitCode()
}

func TestADemoOnAServer(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	for name, server := range held(demoServers, "PostgreSQL") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := server.url(t)
			d, other := startDemo(t, program, storeVariable+"="+url), startDemo(t, program, storeVariable+"="+url)
			d.keepsPayments()
			assert.Equal(t, other.ledger("keyed"), account{}, "another demo's ledger")
			other.payUntil("k1") // the same key
			assert.Equal(t, other.ledger("keyed"), paidOnce, "another demo's ledger")
			other.stop()
			d.keepsOrders()
			d.takesWhatIsNoText()
			d.letsACrowdShop()

			assert.Contains(t, d.send(http.MethodGet, "/", "").Body, `y="15">`+name+`</text>`, "the lane of the store")
			assert.Contains(t, d.send(http.MethodGet, "/metrics", "").Body, `semel_store_info{db_system_name="`+server.metrics+`"`)
			log := d.send(http.MethodGet, "/demo/log", "").Body
			assert.Contains(t, log, `\"store\":\"`+name+`\"`)
			listed := runCommand(t, program, "keys", "list", "--limit=0", "--store="+url)
			assert.Contains(t, listed, "/payments:anonymous")
			assert.True(t, !strings.Contains(log+listed+d.printed.String()+d.arguments(), demoSecret), "the password is shown")
			if server.open != nil {
				d.stop()
				asksAsTheDocumentSays(t, server, url)
			}
		})
	}
}

// asksAsTheDocumentSays sends the database what docs/stores.md does.
func asksAsTheDocumentSays(t *testing.T, server demoServer, url string) {
	t.Helper()
	db, err := server.open(url)
	assert.NoError(t, err)
	defer db.Close()
	found := answers(t, db, typed(t, "FROM demo_payments"), "demo", "door", "payments", "amount")
	assert.True(t, slices.ContainsFunc(found, func(row string) bool { return strings.HasSuffix(row, " keyless 2 5000") }), "got %q", found)
	for range 2 {
		_, err = db.ExecContext(t.Context(), typed(t, "DROP TABLE demo_payments"))
	}
	assert.True(t, err != nil, "there is nothing to drop any more")
}

// keepsPayments pays at all doors and looks for what is kept of it.
func (d demo) keepsPayments() {
	d.t.Helper()
	first, again := d.payUntil("k1"), d.payUntil("k1")
	assert.Equal(d.t, again.Body, first.Body)
	assert.Equal(d.t, again.Header.Get("Idempotent-Replayed"), "true")
	assert.Equal(d.t, d.send(http.MethodGet, first.Header.Get("Location"), "").Body, first.Body, "the stored payment")
	assert.Equal(d.t, d.ledger("keyed"), paidOnce)
	naive := d.pay("/naive/payments", "k1")
	assert.Equal(d.t, d.pay("/naive/payments", "k1").Body, naive.Body)
	assert.Equal(d.t, d.ledger("naive"), paidOnce)
	d.pay("/unsafe/payments", "k1")
	d.pay("/unsafe/payments", "k1")
	assert.Equal(d.t, d.ledger("keyless"), paidTwice)
	killed := d.pay("/payments", "k2", "X-Demo-Fault", "killed-after-charge")
	assert.Equal(d.t, killed.Status, 0)
	d.payUntil("k2")
	assert.Equal(d.t, d.ledger("keyed"), account{Orders: 2, Payments: 2, Charges: 2, Charged: 2, Taken: 5000})
}

// keepsOrders stores an order that its client has named.
func (d demo) keepsOrders() {
	d.t.Helper()
	const path = "/orders/o1"
	for _, c := range []struct {
		method, body string
		status       int
	}{
		{http.MethodGet, "", http.StatusNotFound},
		{http.MethodPut, `{"item":"mug"}`, http.StatusCreated},
		{http.MethodPut, `{"item":"mug"}`, http.StatusCreated},
		{http.MethodGet, "", http.StatusOK},
		{http.MethodPut, `{"item":"Mug"}`, http.StatusOK},
		{http.MethodPut, `{"item":"Mug"}`, http.StatusOK},
		{http.MethodPut, `{"item":"mug"}`, http.StatusOK},
		{http.MethodDelete, "", http.StatusNoContent},
		{http.MethodDelete, "", http.StatusNotFound},
		{http.MethodPut, `{"item":"mug"}`, http.StatusCreated},
	} {
		got := d.send(c.method, path, c.body)
		assert.Equal(d.t, got.Status, c.status, "%s %s: %s", c.method, c.body, got.Body)
	}
	assert.Equal(d.t, d.send(http.MethodPut, "/orders/O1", `{"item":"cup"}`).Status, http.StatusCreated, "another order")
	assert.Equal(d.t, d.send(http.MethodGet, path, "").Body, `{"item":"mug"}`)
}

// takesWhatIsNoText sends what a client may send and a database may refuse.
func (d demo) takesWhatIsNoText() {
	d.t.Helper()
	for _, path := range []string{"/payments/%00%ff", "/orders/%00%ff", "/orders/%ff"} {
		assert.Equal(d.t, d.send(http.MethodGet, path, "").Status, http.StatusNotFound, "%s", path)
	}
	assert.Equal(d.t, d.send(http.MethodDelete, "/orders/%ff", "").Status, http.StatusNotFound)
	odd := []string{"X-Customer-Id", "c\xff \xe4", "X-Order-Id", "o"}
	first := d.pay("/naive/payments", "k\xff", odd...)
	assert.Equal(d.t, first.Status, http.StatusCreated, "%s", first.Body)
	assert.Equal(d.t, d.pay("/naive/payments", "k\xff", odd...).Body, first.Body, "a key that is no text")
	assert.True(d.t, d.pay("/naive/payments", "K\xff", odd...).Body != first.Body, "a key in capitals is another one")
	long := d.pay("/naive/payments", strings.Repeat("k", 257), "X-Customer-Id", strings.Repeat("c", 1024))
	assert.Equal(d.t, long.Status, http.StatusCreated, "%s", long.Body)
	body := strings.Replace(demoOrder, "r_123", `é\t\u0001\ud83d\ude00`, 1)
	var recipient demoAnswer
	assert.Eventually(d.t, "a payment to somebody with an odd name", func() bool {
		recipient = d.send(http.MethodPost, "/payments", body, "Idempotency-Key", "recipient", "X-Customer-Id", "c\xff")
		return recipient.Status == http.StatusCreated
	})
	assert.Equal(d.t, d.send(http.MethodGet, recipient.Header.Get("Location"), "").Body, recipient.Body, "the stored payment")
}

// letsACrowdShop has a crowd place orders while processes are killed.
func (d demo) letsACrowdShop() {
	d.t.Helper()
	const shoppers = 10
	a := d.send(http.MethodPost, "/demo/crowd", fmt.Sprintf(`{"seed":7,"shoppers":%d,"trouble":20}`, shoppers))
	assert.Equal(d.t, a.Status, http.StatusAccepted, "%s", a.Body)
	var run struct {
		Running bool
		Holds   *bool
	}
	assert.Eventually(d.t, "the run has ended", func() bool {
		run.Holds = nil
		d.read("/demo/crowd", &run)
		return !run.Running
	})
	assert.True(d.t, run.Holds != nil && *run.Holds, "it holds: %s", d.send(http.MethodGet, "/demo/crowd", "").Body)
	var ledger map[string]account
	d.read("/demo/crowd/ledger", &ledger)
	keyed := ledger["keyed"]
	taken := keyed.Taken
	assert.Equal(d.t, keyed, account{Orders: shoppers, Payments: shoppers, Charges: shoppers, Charged: shoppers, Taken: taken})
}

// restartable is a server that is ended and started again.
type restartable interface {
	Start() error
	Addr() string
}

func TestADemoGoesOnWhenItsServerIsBack(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	for name, start := range map[string]func(t *testing.T) (s restartable, url string, end func()){
		"PostgreSQL": func(t *testing.T) (restartable, string, func()) {
			t.Helper()
			p := services.NewPostgres(t)
			return p, p.URL(), p.StopImmediate
		},
		"MariaDB": func(t *testing.T) (restartable, string, func()) {
			t.Helper()
			m := services.NewMariaDB(t)
			return m, mariadbUser(t, m, "ALL"), m.Kill
		},
		"Redis": func(t *testing.T) (restartable, string, func()) {
			t.Helper()
			r := services.NewRedis(t)
			return r, r.URL(), r.Kill
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, url, end := start(t)
			d := startDemo(t, program, storeVariable+"="+url)
			first := d.payUntil("k1")
			end()
			away := d.pay("/payments", "k2")
			assert.Equal(t, away.Status, http.StatusServiceUnavailable, "%s", away.Body)
			assert.True(t, away.Header.Get("Retry-After") != "", "Retry-After")
			assert.NoError(t, syscall.Kill(d.child("service"), syscall.SIGKILL))
			assert.Eventually(t, "another service waits for its store", func() bool {
				return strings.Contains(d.printed.String(), "waits for "+name+"\n")
			})
			assert.NoError(t, server.Start())
			assert.Equal(t, d.payUntil("k1").Body, first.Body)
			d.payUntil("k2")
			assert.Equal(t, d.ledger("keyed"), account{Orders: 2, Payments: 2, Charges: 2, Charged: 2, Taken: 5000})
		})
	}
}

func TestWhatAServerRefusesIsExplainedAndItsPasswordNotShown(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	const (
		noLogin    = "the server does not let this user in"
		noDatabase = "there is no such database on the server"
		noRights   = "the user may not do what has to be done"
	)
	for name, c := range map[string]struct {
		url  func(t *testing.T) string
		want string
	}{
		"PostgreSQL, no such user": {func(t *testing.T) string {
			t.Helper()
			return strings.Replace(demoServers["PostgreSQL"].url(t), "semel:", "nobody:", 1)
		}, noLogin},
		"PostgreSQL, no such database": {func(t *testing.T) string {
			t.Helper()
			return withSecret(strings.Replace(services.SharedPostgres(t).URL(), "/postgres?", "/nothing?", 1))
		}, noDatabase},
		"PostgreSQL, a user who may only read": {func(t *testing.T) string {
			t.Helper()
			url := demoServers["PostgreSQL"].url(t)
			runCommand(t, program, "migrate", "up", "--store="+url) // some right is there, and some not
			owner, err := sql.Open("pgx", url)
			assert.NoError(t, err)
			defer owner.Close()
			_, err = owner.ExecContext(t.Context(), `DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`)
			assert.NoError(t, err)
			return strings.Replace(url, "semel:", "reader:", 1)
		}, noRights},
		"MariaDB, another password": {func(t *testing.T) string {
			t.Helper()
			return strings.Replace(demoServers["MariaDB"].url(t), demoSecret, demoSecret+"x", 1)
		}, noLogin},
		"MariaDB, no such database": {func(t *testing.T) string {
			t.Helper()
			return "mysql://root@" + services.SharedMariaDB(t).Addr() + "/nothing"
		}, noDatabase},
		"MariaDB, another's database": {func(t *testing.T) string {
			t.Helper()
			return demoServers["MariaDB"].url(t) + "x"
		}, noRights},
		"MariaDB, a user who may only read": {func(t *testing.T) string {
			t.Helper()
			return mariadbUser(t, services.SharedMariaDB(t), "SELECT")
		}, noRights},
		"Redis, another password": {func(t *testing.T) string {
			t.Helper()
			return strings.Replace(demoServers["Redis"].url(t), demoSecret, demoSecret+"x", 1)
		}, noLogin},
		"Redis that evicts": {func(t *testing.T) string {
			t.Helper()
			r := services.NewRedis(t)
			_, err := r.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			assert.NoError(t, err)
			return r.URL()
		}, "has maxmemory-policy allkeys-lru"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, stdout, code := runDemo(t, program, c.url(t))
			assert.Equal(t, code, 1, "%s", stderr)
			assert.Equal(t, stdout, "")
			assert.Contains(t, stderr, c.want)
			assert.True(t, !strings.Contains(stderr, demoSecret), "the password is shown: %s", stderr)
		})
	}
}
