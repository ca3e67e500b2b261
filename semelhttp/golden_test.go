package semelhttp_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/memhttp"
	"github.com/semel-dev/semel/semelhttp"
)

var update = flag.Bool("update", false, "rewrite testdata/golden and docs/problems.md")

// A golden case is one file: a sentence, then sections. Those with input are
// config, request, background request, wait and store; those that are compared,
// or rewritten by -update, are response, background response and state.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*.txt")
	assert.NoError(t, err)
	assert.True(t, len(files) > 0, "there are golden cases")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			assert.NoError(t, err)
			c := parseGolden(string(text))
			synctest.Test(t, func(t *testing.T) { c.run(t) })
			if *update {
				assert.NoError(t, os.WriteFile(file, []byte(c.String()), 0o600))
			}
		})
	}
}

type section struct{ name, text string }

type goldenCase struct {
	claim    string
	sections []section
}

func parseGolden(text string) *goldenCase {
	c := &goldenCase{}
	current := &c.claim
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, end := strings.CutSuffix(name, " --"); ok && end {
			c.sections = append(c.sections, section{name: name})
			current = &c.sections[len(c.sections)-1].text
			continue
		}
		*current += line
	}
	return c
}

func (c *goldenCase) String() string {
	var b strings.Builder
	b.WriteString(c.claim)
	for _, s := range c.sections {
		fmt.Fprintf(&b, "-- %s --\n%s", s.name, s.text)
	}
	return b.String()
}

// bench is a running golden case.
type bench struct {
	*service

	server     *memhttp.Server
	answer     string
	background chan string
}

func (c *goldenCase) run(t *testing.T) {
	b := &bench{background: make(chan string, 1)}
	config := map[string]string{}
	for i := range c.sections {
		s := &c.sections[i]
		name, argument, _ := strings.Cut(s.name, " ")
		var got string
		switch s.name {
		case "config":
			for line := range strings.Lines(s.text) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				config[key] = value
			}
			continue
		case "request":
			b.start(t, config)
			b.answer = b.send(s.text)
			continue
		case "background request":
			b.start(t, config)
			go func() { b.background <- b.send(s.text) }()
			synctest.Wait()
			continue
		case "store":
			b.breakStore(t, strings.TrimSpace(s.text))
			continue
		case "response":
			got = b.answer
		case "background response":
			got = <-b.background
		case "state":
			got = b.state(t, s.text)
		default:
			wait, err := time.ParseDuration(argument)
			if name != "wait" || err != nil {
				t.Fatalf("unknown section %q", s.name)
			}
			time.Sleep(wait)
			synctest.Wait()
			continue
		}
		if *update {
			s.text = got
		}
		assert.Equal(t, s.text, got, "%s, section %d %q (want is the file)", strings.TrimSpace(c.claim), i+1, s.name)
	}
}

// start starts the service as configured, once.
func (b *bench) start(t *testing.T, config map[string]string) {
	t.Helper()
	if b.server != nil {
		return
	}
	set, route := settings{}, semelhttp.Route{}
	names := []string{"created"}
	for key, value := range config {
		number, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "recovery":
			set.recovery = parseRecovery(t, value)
		case "handlers":
			names = strings.Fields(value)
		case "mode":
			route.Mode = semel.Joined
		case "all-in-tx":
			route.AllInTx = true
		case "fail-open":
			route.FailOpen = true
		case "not-applied":
			route.NotApplied = []int{int(number)}
		case "headers":
			route.Headers = strings.Fields(value)
		case "strict":
			set.mw.StrictKey = true
		case "key-header":
			set.mw.KeyHeader = value
		case "key-optional":
			route.KeyOptional = true
		case "max-request-body":
			route.MaxRequestBody = number
		case "max-reply-body":
			route.MaxReplyBody = number
		case "byte-budget":
			set.mw.ByteBudget, set.mw.MaxReplyBody, set.mw.MaxRequestBody = number, number, number
		case "handler-deadline":
			set.guard.HandlerDeadline, _ = time.ParseDuration(value)
		case "credential":
			hmac, err := semelhttp.AuthorizationHMAC([]byte(value))
			assert.NoError(t, err)
			set.mw.Credential = hmac
		case "before-replay":
			route.BeforeReplay = func(*http.Request, semel.Record) error { return errors.New(value) }
		default:
			t.Fatalf("unknown config %q", key)
		}
	}
	b.service = newService(t, set)
	b.store.set(func(s *faultyStore) { s.columns = true })
	b.server = memhttp.New(t, b.protect(t, route, b.inTurn(t, names)))
}

func parseRecovery(t *testing.T, text string) semel.Recovery {
	t.Helper()
	if text == "hold" {
		return semel.Hold()
	}
	d, err := time.ParseDuration(strings.TrimPrefix(text, "resume:"))
	assert.NoError(t, err)
	return semel.Resume(d)
}

// inTurn returns a handler that is each of those named in turn, and then the
// last for good.
func (b *bench) inTurn(t *testing.T, names []string) http.HandlerFunc {
	t.Helper()
	var turns []http.HandlerFunc
	for _, name := range names {
		handler, ok := b.handlers()[name]
		if !ok {
			t.Fatalf("unknown handler %q", name)
		}
		turns = append(turns, handler)
	}
	turn := 0
	return func(w http.ResponseWriter, r *http.Request) {
		handler := turns[min(turn, len(turns)-1)]
		turn++
		handler(w, r)
	}
}

// breakStore makes the store fail as told.
func (b *bench) breakStore(t *testing.T, how string) {
	t.Helper()
	down := errors.New("connection refused")
	b.store.set(func(s *faultyStore) {
		switch how {
		case "begin fails":
			s.beginErr = down
		case "begin is refused":
			s.beginErr = semel.ErrCommitRefused
		case "finish fails":
			s.finish = down
		case "finish is refused":
			s.finish = semel.ErrCommitRefused
		case "commit is refused":
			s.commit = semel.ErrCommitRefused
		case "works":
			s.beginErr, s.finish, s.commit = nil, nil, nil
		default:
			t.Fatalf("unknown store fault %q", how)
		}
	})
}

// send writes a request as it stands in the file, and returns the answer in
// the form of the file. "..." at the end of a body keeps the rest back.
func (b *bench) send(text string) string {
	head, body, _ := strings.Cut(text, "\n\n")
	body = strings.TrimSuffix(body, "\n")
	sent, held := strings.CutSuffix(body, "...")
	conn, err := b.server.Dial()
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	lines = append(lines, "Host: shop.test")
	if !strings.Contains(head, "Transfer-Encoding") {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(body)))
	}
	go func() {
		io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"+strings.ReplaceAll(sent, "\\r\\n", "\r\n"))
		if held && strings.Contains(head, "X-Cut") {
			conn.Close()
		}
	}()
	return readAnswer(bufio.NewReader(conn))
}

func readAnswer(from *bufio.Reader) string {
	var b strings.Builder
	for {
		resp, err := http.ReadResponse(from, nil)
		if err != nil {
			return b.String() + "(the connection broke)\n"
		}
		body, err := io.ReadAll(resp.Body)
		writeAnswer(&b, resp, body)
		if err != nil {
			b.WriteString("(the connection broke)\n")
		}
		if resp.StatusCode >= 200 {
			return b.String()
		}
	}
}

func writeAnswer(b *strings.Builder, resp *http.Response, body []byte) {
	fmt.Fprintf(b, "%s %s\n", resp.Proto, resp.Status)
	if len(resp.TransferEncoding) > 0 {
		resp.Header["Transfer-Encoding"] = resp.TransferEncoding
	}
	if resp.Close {
		resp.Header.Set("Connection", "close")
	}
	resp.Header.Del("Date")
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, value := range resp.Header[name] {
			fmt.Fprintf(b, "%s: %s\n", name, value)
		}
	}
	if len(body) > 0 {
		fmt.Fprintf(b, "\n%s", bytes.TrimSuffix(body, []byte("\n")))
		b.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(resp.Trailer)) {
		fmt.Fprintf(b, "(trailer %s: %s)\n", name, resp.Trailer.Get(name))
	}
}

// state prints the records of the keys that a section names, one a line.
func (b *bench) state(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		scope, key, ok := strings.Cut(name, "/")
		switch {
		case name == "runs":
			fmt.Fprintf(&out, "runs: %d\n", b.runCount())
		case name == "transactions":
			fmt.Fprintf(&out, "transactions: %s\n", b.store.transactions())
		case ok:
			rec, err := b.guard.Get(t.Context(), "orders:"+scope, key)
			assert.NoError(t, err)
			fmt.Fprintf(&out, "%s: %s\n", name, showRecord(rec))
		default:
			t.Fatalf("unknown state %q", name)
		}
	}
	return out.String()
}

func showRecord(rec semel.Record) string {
	s := fmt.Sprintf("%v, attempt %d", rec.State, rec.Attempt)
	switch {
	case rec.State == semel.StateDone && rec.ReplyKept:
		s += fmt.Sprintf(", %d kept", rec.Reply.Status)
	case rec.State == semel.StateDone:
		s += fmt.Sprintf(", %d not kept", rec.Reply.Status)
	}
	if rec.Open {
		s += ", open"
	}
	if rec.ReplyStarted {
		s += ", reply started"
	}
	return s
}
