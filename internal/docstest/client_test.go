package docstest

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// clientProgram is the program of docs/client.md, with a service of the test in
// the place of the bank.
type clientProgram struct {
	path, dir string
	requests  atomic.Int64
	came      chan string // the key of each request, before it is answered
}

func newClientProgram(t *testing.T, answer http.HandlerFunc) *clientProgram {
	t.Helper()
	p := &clientProgram{dir: t.TempDir(), came: make(chan string, 100)}
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r) // it publishes no rules
			return
		}
		p.requests.Add(1)
		p.came <- r.Header.Get("Idempotency-Key")
		answer(w, r)
	}))
	t.Cleanup(bank.Close)
	p.build(t, bank.URL)
	return p
}

func (p *clientProgram) build(t *testing.T, bank string) {
	t.Helper()
	const address = "https://bank.example"
	source := document{text: read(t, "docs/client.md")}.blocks("go")[0].text
	assert.Contains(t, source, address)
	p.path = build(t, "docs/client.md", strings.ReplaceAll(source, address, bank))
}

// start runs the program until it is ended or the test is; what it prints is
// said, and its log is in the pipe.
func (p *clientProgram) start(t *testing.T, said *strings.Builder) (cmd *exec.Cmd, log io.Reader) {
	t.Helper()
	cmd = exec.Command(p.path)
	cmd.Dir, cmd.Stdout = p.dir, said
	log, err := cmd.StderrPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, log
}

// run runs it to its end, and returns what it printed.
func (p *clientProgram) run(t *testing.T) string {
	t.Helper()
	var said strings.Builder
	cmd, log := p.start(t, &said)
	text, err := io.ReadAll(log)
	assert.NoError(t, err)
	assert.NoError(t, cmd.Wait(), "%s%s", said.String(), text)
	return said.String()
}

func TestTheProgramOfTheClientPageSendsAnOrderOnce(t *testing.T) {
	t.Parallel()
	status := http.StatusCreated
	p := newClientProgram(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	assert.Equal(t, p.run(t), "paid: order-17\n", "the first start")
	assert.Equal(t, <-p.came, `"order-17"`, "the key")
	assert.Equal(t, p.run(t), "", "the second start")
	assert.Equal(t, p.requests.Load(), int64(1), "requests of two starts")

	p.dir, status = t.TempDir(), http.StatusPaymentRequired
	assert.Equal(t, p.run(t), "refused: order-17 402 refused\n", "an order that is refused")
	assert.Equal(t, p.run(t), "", "the start after it")
	assert.Equal(t, p.requests.Load(), int64(2), "requests of four starts")
}

func TestTheProgramOfTheClientPageBooksOnceWhatAKillInterrupted(t *testing.T) {
	t.Parallel()
	killed := make(chan struct{})
	p := newClientProgram(t, func(w http.ResponseWriter, _ *http.Request) {
		<-killed
		w.WriteHeader(http.StatusCreated)
	})
	var said strings.Builder
	cmd, _ := p.start(t, &said)
	assert.Equal(t, <-p.came, `"order-17"`, "the key")
	assert.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	close(killed)
	assert.Equal(t, said.String(), "", "before the kill")
	assert.Equal(t, p.run(t), "paid: order-17\n", "the start after the kill")
	assert.Equal(t, <-p.came, `"order-17"`, "the key after the kill")
	assert.Equal(t, p.run(t), "", "the start after that")
	assert.Equal(t, p.requests.Load(), int64(2), "requests of three starts")
}

func TestTheProgramOfTheClientPageSaysHowEachTryEnds(t *testing.T) {
	t.Parallel()
	p := &clientProgram{dir: t.TempDir()}
	p.build(t, "http://"+freeAddress(t)) // where nothing listens
	var said strings.Builder
	cmd, log := p.start(t, &said)
	lines := bufio.NewScanner(log)
	for _, want := range []string{"order-17: try 1: ", "order-17: try 2: "} {
		assert.True(t, lines.Scan(), "a line for each try")
		assert.Contains(t, lines.Text(), want)
		assert.Contains(t, lines.Text(), "connection refused")
	}
	assert.NoError(t, cmd.Process.Signal(os.Interrupt))
	for lines.Scan() {
		t.Log(lines.Text())
	}
	assert.NoError(t, cmd.Wait())
	assert.Contains(t, said.String(), "not paid, to be tried again: order-17 ")
}
