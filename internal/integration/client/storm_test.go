package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelhttp"
)

// plan is how hard the storm is.
type plan struct {
	callers, orders int
	// How often callers and the service are killed, and after how long again. On a
	// slow machine, a service that is killed for ever would get nothing done.
	callerKills, serviceKills int
	callerEvery, serviceEvery time.Duration
	within                    time.Duration
}

func planned() plan {
	if os.Getenv("SEMEL_LONG") != "" {
		return plan{callers: 16, orders: 10_000, callerKills: 100, serviceKills: 200, callerEvery: time.Second, serviceEvery: 2 * time.Second, within: 40 * time.Minute}
	}
	return plan{callers: 3, orders: 90, callerKills: 4, serviceKills: 4, callerEvery: 600 * time.Millisecond, serviceEvery: time.Second, within: 20 * time.Minute}
}

// tap stands between the callers and the service, and does not die: it sees what
// is on the wire, and loses, refuses or passes on what it sees.
type tap struct {
	service atomic.Pointer[string]

	mu       sync.Mutex
	random   *rand.Rand
	requests int
	answers  map[int]int         // by status; of those that had none, 0
	again    map[int]int         // of the refusals, those that said when to come again
	tries    map[string]int      // how often each was on the wire
	sent     map[string][]string // keys and bodies of each order, without repeats
}

func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fate := 100 // asking for the rules is no attempt
	if r.URL.Path != semelhttp.WellKnownPath {
		fate = p.see(r, string(body))
	}
	switch {
	case err != nil || fate < 5: // lost on the way
		p.cut()
	case fate < 10:
		p.answer(w, http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}})
		return
	case fate < 15:
		p.answer(w, http.StatusServiceUnavailable, http.Header{"Retry-After": {time.Now().UTC().Add(time.Second).Format(http.TimeFormat)}})
		return
	}
	resp, err := p.pass(r, body)
	if err != nil || fate < 35 { // the service is down, or the reply is lost
		if err == nil {
			resp.Body.Close()
		}
		p.cut()
	}
	defer resp.Body.Close()
	p.answer(w, resp.StatusCode, resp.Header)
	io.Copy(w, resp.Body)
}

// cut closes the caller's connection.
func (p *tap) cut() {
	p.note(0, nil)
	panic(http.ErrAbortHandler) //nolint:forbidigo // the documented way to say so to net/http.
}

func (p *tap) answer(w http.ResponseWriter, status int, h http.Header) {
	p.note(status, h)
	maps.Copy(w.Header(), h)
	w.WriteHeader(status)
}

func (p *tap) note(status int, h http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[status]++
	if h.Get("Retry-After") != "" {
		p.again[status]++
	}
}

// see writes down a request and draws what becomes of it: a number under 100.
func (p *tap) see(r *http.Request, body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	p.tries[r.Header.Get(tryHeader)]++
	line := strings.Join(r.Header["Idempotency-Key"], ",") + " " + r.Method + " " + r.URL.Path
	if !slices.Contains(p.sent[body], line) {
		p.sent[body] = append(p.sent[body], line)
	}
	return p.random.IntN(100)
}

// onward passes requests on, each on a connection of its own, so that nothing sends
// them again.
var onward = &http.Transport{DisableKeepAlives: true}

func (p *tap) pass(r *http.Request, body []byte) (*http.Response, error) {
	to := p.service.Load()
	if to == nil {
		return nil, io.ErrClosedPipe
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, *to+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	resp, err := onward.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(whole))
	return resp, err
}

// child is a process of the storm.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// begin starts a process in a role; it is killed when the test ends.
func begin(t *testing.T, role string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	assert.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	c := &child{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func TestStormOfKilledCallersAndAKilledService(t *testing.T) {
	t.Parallel()
	p := planned()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("SEMEL_STORM_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		assert.NoError(t, err)
	}
	t.Logf("seed %d: SEMEL_STORM_SEED=%d draws the same fates", seed, seed)
	s := &storm{
		t: t, plan: p, folder: t.TempDir(), killed: make(map[string]bool),
		random: rand.New(rand.NewPCG(seed, 1)),
		tap: &tap{
			random: rand.New(rand.NewPCG(seed, 2)), tries: make(map[string]int), sent: make(map[string][]string),
			answers: make(map[int]int), again: make(map[int]int),
		},
	}
	assert.NoError(t, os.Mkdir(filepath.Join(s.folder, "attempts"), 0o700))
	server := httptest.NewServer(s.tap)
	t.Cleanup(server.Close)
	s.url = server.URL
	begun := time.Now()
	s.run()
	s.judge()
	fmt.Fprintf(t.Output(), "report: client storm: %d orders of %d callers in %v: %d requests, of which %d had no answer; answers %v, "+
		"with Retry-After %v; callers killed %d times, the service %d times\n",
		p.orders, p.callers, time.Since(begun).Round(time.Second), s.tap.requests, s.tap.answers[0], s.tap.answers, s.tap.again,
		len(s.killed), s.serviceKills)
}

type storm struct {
	t      *testing.T
	plan   plan
	folder string
	url    string
	random *rand.Rand
	tap    *tap

	callers      []*child
	lives        []int
	killed       map[string]bool // lives of callers
	service      *child
	serviceKills int
}

func (s *storm) database() string { return filepath.Join(s.folder, "payments.db") }

func (s *storm) startService() {
	s.service = begin(s.t, "service", databaseVariable+"="+s.database())
	line, err := s.service.out.ReadString('\n')
	assert.NoError(s.t, err, "the service's address")
	address := strings.TrimSpace(line)
	s.tap.service.Store(&address)
}

func (s *storm) name(caller int) string { return fmt.Sprintf("%d.%d", caller, s.lives[caller]) }

func (s *storm) startCaller(n int) {
	s.lives[n]++
	s.callers[n] = begin(s.t, "caller", folderVariable+"="+s.folder, urlVariable+"="+s.url,
		selfVariable+"="+fmt.Sprintf("%d %d %d %d", n, s.lives[n], s.plan.callers, s.plan.orders))
}

// run lets the storm go on until every order is booked and no intent is left.
func (s *storm) run() {
	s.t.Helper()
	s.startService()
	s.callers, s.lives = make([]*child, s.plan.callers), make([]int, s.plan.callers)
	for n := range s.callers {
		s.startCaller(n)
	}
	store, err := semelclient.OpenFileStore(filepath.Join(s.folder, "intents"))
	assert.NoError(s.t, err)
	defer store.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	nextCaller, nextService := begun.Add(s.plan.callerEvery), begun.Add(s.plan.serviceEvery)
	for now := range tick.C {
		if now.Sub(begun) > s.plan.within {
			s.t.Fatalf("after %v: %s", s.plan.within, s.state(store))
		}
		if now.After(nextService) && s.serviceKills < s.plan.serviceKills {
			s.tap.service.Store(nil)
			s.service.kill()
			s.serviceKills++
			s.startService()
			nextService = time.Now().Add(s.plan.serviceEvery)
		}
		if now.After(nextCaller) && len(s.killed) < s.plan.callerKills {
			n := s.random.IntN(s.plan.callers)
			s.callers[n].kill()
			s.killed[s.name(n)] = true
			s.startCaller(n)
			nextCaller = time.Now().Add(s.plan.callerEvery)
		}
		if len(s.killed) == s.plan.callerKills && s.over(store) {
			break
		}
	}
	for n, c := range s.callers {
		c.stdin.Close()
		assert.NoError(s.t, c.cmd.Wait(), "caller %d ends well", n)
	}
}

// over reports whether every order is booked and no intent is left.
func (s *storm) over(store *semelclient.FileStore) bool {
	booked, err := bookings(s.folder)
	assert.NoError(s.t, err)
	if len(booked) < s.plan.orders {
		return false
	}
	for range store.Keys(s.t.Context()) {
		return false
	}
	return true
}

func (s *storm) state(store *semelclient.FileStore) string {
	booked, err := bookings(s.folder)
	open := 0
	for range store.Keys(s.t.Context()) {
		open++
	}
	return fmt.Sprintf("%d of %d orders are booked, %d intents are left, %d requests were seen: %v",
		len(booked), s.plan.orders, open, s.tap.requests, err)
}

// judge holds what happened against what was promised.
func (s *storm) judge() {
	t := s.t
	t.Helper()
	booked, err := bookings(s.folder)
	assert.NoError(t, err)
	paid, err := payments(t.Context(), s.database())
	assert.NoError(t, err)
	for order := range s.plan.orders {
		body := bodyOf(order)
		assert.Equal(t, paid[body], 1, "payments of order %d", order)
		assert.True(t, len(booked[body]) > 0, "order %d is booked", order)
		for _, outcome := range booked[body] {
			assert.Equal(t, outcome, "applied\treply", "what is booked for order %d", order)
		}
		assert.Equal(t, s.tap.sent[body], []string{fmt.Sprintf(`"order %d" POST /payments`, order)}, "what was sent for order %d", order)
	}
	assert.Equal(t, len(s.tap.sent), s.plan.orders, "other bodies were never sent")
	assert.True(t, s.serviceKills > 0 && len(s.killed) == s.plan.callerKills, "both were killed: %d and %d times", s.serviceKills, len(s.killed))
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		assert.True(t, s.tap.again[status] > 0, "some were told %d and when to come again", status)
	}
	if s.plan.orders >= 10_000 { // in the short form there may be none
		assert.True(t, s.tap.again[http.StatusConflict] > 0, "some were told 409 and when to come again")
	}
	s.judgeAttempts()
}

// judgeAttempts compares the wire with what each life of a caller reported. One
// that was killed could not report what it was doing then.
func (s *storm) judgeAttempts() {
	t := s.t
	t.Helper()
	wire := make(map[string]int)
	for try, n := range s.tap.tries {
		assert.Equal(t, n, 1, "how often try %s was on the wire", try)
		life, _, _ := strings.Cut(try, "/")
		wire[life]++
	}
	reports, err := filepath.Glob(filepath.Join(s.folder, "attempts", "*"))
	assert.NoError(t, err)
	for _, path := range reports {
		text, err := os.ReadFile(path)
		assert.NoError(t, err)
		reported := 0
		for line := range strings.Lines(string(text)) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			assert.NoError(t, err)
			reported += n
		}
		life := filepath.Base(path)
		if s.killed[life] {
			under := wire[life] - reported
			assert.True(t, under >= 0 && under <= working+semelclient.DefaultParallel,
				"life %s, which was killed, reported %d of %d", life, reported, wire[life])
			continue
		}
		assert.Equal(t, reported, wire[life], "attempts that life %s reported", life)
	}
}
