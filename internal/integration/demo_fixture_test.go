package integration

import (
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

// demoSecret is the password in the URLs of these tests, which nobody may see.
const demoSecret = "canary-7f3a"

// demoServer is a server on which a demo can keep something.
type demoServer struct {
	metrics string // what metrics call it
	// url makes a database, with a user and a password.
	url func(t *testing.T) string
	// open opens the database at a URL, if payments are there.
	open func(url string) (*sql.DB, error)
}

var demoServers = map[string]demoServer{
	"PostgreSQL": {metrics: "postgresql", url: func(t *testing.T) string {
		t.Helper()
		return withSecret(services.SharedPostgres(t).NewDatabase(t)) // which it does not ask for
	}, open: func(url string) (*sql.DB, error) { return sql.Open("pgx", url) }},
	"MariaDB": {metrics: "mariadb", url: func(t *testing.T) string {
		t.Helper()
		return mariadbUser(t, services.SharedMariaDB(t), "ALL")
	}, open: func(url string) (*sql.DB, error) {
		user, at, _ := strings.Cut(strings.TrimPrefix(url, "mysql://"), "@")
		addr, database, _ := strings.Cut(at, "/")
		return sql.Open("mysql", user+"@tcp("+addr+")/"+database)
	}},
	"Redis": {metrics: "redis", url: func(t *testing.T) string {
		t.Helper()
		r := services.SharedRedis(t)
		_, err := r.Do("ACL", "SETUSER", "demo", "on", ">"+demoSecret, "~*", "&*", "+@all")
		assert.NoError(t, err)
		return "redis://demo:" + demoSecret + "@" + strings.TrimPrefix(r.NewDatabase(t), "redis://")
	}},
}

// withSecret gives the user of a URL a password.
func withSecret(url string) string { return strings.Replace(url, "@", ":"+demoSecret+"@", 1) }

// mariadbUser makes a database and a user of it with a password, who may do what
// rights say, and returns its URL.
func mariadbUser(t *testing.T, m *services.MariaDB, rights string) string {
	t.Helper()
	dsn := m.NewDatabase(t)
	admin, err := sql.Open("mysql", dsn)
	assert.NoError(t, err)
	defer admin.Close()
	name := filepath.Base(dsn)
	for _, statement := range []string{
		"CREATE USER " + name + " IDENTIFIED BY '" + demoSecret + "'",
		"GRANT " + rights + " ON " + name + ".* TO " + name,
	} {
		_, err := admin.ExecContext(t.Context(), statement)
		assert.NoError(t, err, statement)
	}
	return "mysql://" + name + ":" + demoSecret + "@" + m.Addr() + "/" + name
}

// storeVariable is where a demo is told its store.
const storeVariable = "SEMEL_DEMO_STORE"

const demoOrder = `{"amount":2500,"currency":"USD","recipientId":"r_123"}`

// demoAnswer is what came back; Status is zero when nothing did.
type demoAnswer struct {
	Status int
	Header http.Header
	Body   string
}

// send sends a request; header names and values alternate.
func (d demo) send(method, path, body string, header ...string) demoAnswer {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.base+path, strings.NewReader(body))
	assert.NoError(d.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		return demoAnswer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return demoAnswer{}
	}
	return demoAnswer{resp.StatusCode, resp.Header, string(text)}
}

// pay pays at a door with a key.
func (d demo) pay(path, key string, header ...string) demoAnswer {
	d.t.Helper()
	return d.send(http.MethodPost, path, demoOrder, append(header, "Idempotency-Key", key)...)
}

// payUntil pays with a key until there is a payment.
func (d demo) payUntil(key string) demoAnswer {
	d.t.Helper()
	var a demoAnswer
	assert.Eventually(d.t, "a payment under "+key, func() bool {
		a = d.pay("/payments", key)
		return a.Status == http.StatusCreated
	})
	return a
}

// child returns the number of the latest child of that name, from what the
// supervisor has said.
func (d demo) child(name string) int {
	d.t.Helper()
	found := 0
	for line := range strings.Lines(d.printed.String()) {
		number, up := strings.CutPrefix(strings.TrimSuffix(line, ") is up\n"), "the "+name+" (process ")
		if pid, err := strconv.Atoi(number); up && err == nil {
			found = pid
		}
	}
	assert.True(d.t, found != 0, "the %s is up", name)
	return found
}

// arguments are those with which the demo and its children were started.
func (d demo) arguments() string {
	d.t.Helper()
	var all strings.Builder
	for _, pid := range []int{d.pid, d.child("service"), d.child("bank")} {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		assert.NoError(d.t, err)
		all.Write(line)
	}
	return all.String()
}
