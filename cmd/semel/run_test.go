package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// mainVariable turns this test program into semel itself, so that the tests
// drive real processes, the demo's children included, without a second build.
const mainVariable = "SEMEL_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// limit bounds everything that waits for a real process.
const limit = 60 * time.Second

// program returns a command line of this program that ends with the test.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	assert.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1", "TMPDIR="+t.TempDir())
	return cmd
}

// output runs one command line to its end.
func output(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// running is a demo in processes of its own.
type running struct {
	cmd  *exec.Cmd
	url  string
	data string

	mu     sync.Mutex
	stderr strings.Builder
}

// startDemo starts a demo on a free port and waits until it says that it is
// up.
func startDemo(t *testing.T, args ...string) *running {
	t.Helper()
	cmd := program(t, append([]string{"demo", "--addr=127.0.0.1:0", "--no-browser", "--json"}, args...)...)
	d := &running{cmd: cmd}
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		d.keep(stderr)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-logged
		cmd.Wait()
	})
	var said struct{ URL, Data string }
	if err := json.NewDecoder(stdout).Decode(&said); err != nil {
		t.Fatalf("the demo did not say where it is (%v): %s", err, d.log())
	}
	d.url, d.data = said.URL, said.Data
	return d
}

func (d *running) keep(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		d.mu.Lock()
		d.stderr.WriteString(lines.Text() + "\n")
		d.mu.Unlock()
	}
}

func (d *running) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stderr.String()
}

// pid returns the process id of the latest child of that name, from what the
// supervisor has said.
func (d *running) pid(t *testing.T, name string) int {
	t.Helper()
	var number string
	assert.Eventually(t, "the "+name+" is up", func() bool {
		for line := range strings.Lines(d.log()) {
			if pid, ok := strings.CutPrefix(line, "the "+name+" (process "); ok && strings.HasSuffix(pid, ") is up\n") {
				number, _, _ = strings.Cut(pid, ")")
			}
		}
		return number != ""
	})
	pid, err := strconv.Atoi(number)
	assert.NoError(t, err)
	return pid
}

// alive reports whether a process runs. One that is dead and not yet reaped by
// whoever inherited it does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// answer is what came back; Status is zero when nothing did.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

func (a answer) replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// payment reads the payment of an answer.
func (a answer) payment(t *testing.T) (id, charge string) {
	t.Helper()
	var p struct{ ID, ChargeID string }
	assert.NoError(t, json.Unmarshal([]byte(a.Body), &p), "%s", a.Body)
	return p.ID, p.ChargeID
}

// send sends one request; header names and values alternate.
func (d *running) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	assert.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: limit}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}
	}
	return answer{resp.StatusCode, resp.Header, string(got)}
}

const order = `{"amount":2500,"currency":"USD","recipientId":"r_123"}`

// pay pays with a key.
func (d *running) pay(t *testing.T, key string) answer {
	t.Helper()
	return d.send(t, http.MethodPost, "/payments", order, payments.HeaderKey, key)
}

// payUntil pays with a key until there is a payment.
func (d *running) payUntil(t *testing.T, key string) answer {
	t.Helper()
	var a answer
	assert.Eventually(t, "a payment under "+key, func() bool {
		a = d.pay(t, key)
		return a.Status == http.StatusCreated
	})
	return a
}

func (d *running) arm(t *testing.T, fault payments.Fault) {
	t.Helper()
	a := d.send(t, http.MethodPost, "/demo/faults", `{"fault":"`+string(fault)+`","times":1}`)
	assert.Equal(t, a.Status, http.StatusOK, "%s", a.Body)
}

// ledger reads the ledger, once every process that has a part of it is up.
func (d *running) ledger(t *testing.T) payments.Ledger {
	t.Helper()
	var l payments.Ledger
	var a answer
	assert.Eventually(t, "the ledger can be read", func() bool {
		a = d.send(t, http.MethodGet, "/demo/ledger", "")
		return a.Status != http.StatusServiceUnavailable
	})
	assert.NoError(t, json.Unmarshal([]byte(a.Body), &l), "%s", a.Body)
	return l
}

// asked returns how often the bank was asked for a charge.
func (d *running) asked(t *testing.T, id string) int {
	t.Helper()
	var c struct{ Asked int }
	a := d.send(t, http.MethodGet, "/charges/"+id, "")
	assert.NoError(t, json.Unmarshal([]byte(a.Body), &c), "%s", a.Body)
	return c.Asked
}

// once is the account of one order that was paid once.
var once = payments.Account{Orders: 1, Payments: 1, Charges: 1, Charged: 1, Taken: 2500}
