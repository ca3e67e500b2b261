package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// longestPause is how long a client waits at most, whatever Retry-After
	// says: a run is to be short.
	longestPause = 150 * time.Millisecond
	// patience is how long a client asks for one answer. No outage is as long.
	patience = 3 * time.Minute
	// askWithin bounds one request.
	askWithin = 2 * time.Minute
)

// answer is what came back for one request.
type answer struct {
	status     int
	outcome    string // Semel-Outcome
	body       string
	mediaType  string
	code       string // of a problem
	retry      bool   // a problem says that the same key may be sent again
	retryAfter int    // seconds; zero is none
}

// final reports whether a client need not ask again.
func (a *answer) final() bool { return a.code == "" }

func (a *answer) String() string {
	if a.code != "" {
		return fmt.Sprintf("%d %s (%s)", a.status, a.code, a.outcome)
	}
	return fmt.Sprintf("%d %s", a.status, a.outcome)
}

const unknownOutcome = "outcome-unknown"

// passing are the answers that are not the end, as docs/problems.md has them. A
// server that is down, or that comes back, is no reason for any other one.
var passing = []string{
	"409 in-progress (in-progress)",
	"409 outcome-unknown (unknown)",
	"503 store-unavailable (released)",
	"503 store-unavailable (unknown)",
	"503 commit-refused (released)",
	"503 commit-refused (unknown)",
}

// problem says what is wrong with an answer that is not final, or nothing.
// Under Resume no outcome stays unknown.
func (a *answer) problem(hold bool) string {
	switch {
	case !slices.Contains(passing, a.String()), a.code == unknownOutcome && !hold:
		return "is none that a client may be given here"
	case !a.retry:
		return "says that the key may not be sent again"
	case a.retryAfter < 1:
		return "has no Retry-After"
	case a.mediaType != "application/problem+json":
		return "is no problem of RFC 9457"
	}
	return ""
}

// told is what the clients of one payment were told.
type told struct {
	finals  []final // each once
	unknown int     // sendings that ended by being told that nobody knows
}

// final is a final answer.
type final struct {
	status   int
	body     string
	executed int // of those told so, whether it was their own request that ran
	replayed int
}

// driver is the clients of a run.
type driver struct {
	*plan

	hold    bool
	fleet   fleet
	client  *http.Client
	strikes chan strike  // those that are due
	far     func(n int)  // is told of each sending that is taken
	next    atomic.Int64 // sending

	mu        sync.Mutex
	told      []told // by payment
	answers   map[string]int
	stray     []string // what no client should have seen
	strays    int
	answered  time.Time     // when the latest 2xx came
	outage    time.Duration // the longest time without one
	recovered [workers]int  // 2xx of each worker since the server last went down
}

// newDriver returns clients that have so many connections to each worker.
func newDriver(p *plan, hold bool, f fleet, connections int) *driver {
	return &driver{
		plan: p, hold: hold, fleet: f,
		client: &http.Client{
			Timeout: askWithin,
			Transport: &http.Transport{
				MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, DisableCompression: true,
			},
		},
		strikes: make(chan strike, len(p.strikes)),
		told:    make([]told, len(p.payments)),
		answers: make(map[string]int),
	}
}

// run takes the sendings one after the other, so many at a time, and returns
// when each has its end.
func (d *driver) run(ctx context.Context, atOnce int) {
	defer close(d.strikes)
	d.answered = time.Now()
	var clients sync.WaitGroup
	for range atOnce {
		clients.Go(func() {
			for {
				n := int(d.next.Add(1)) - 1
				if n >= len(d.sendings) {
					return
				}
				d.far(n)
				d.send(ctx, n, d.sendings[n])
			}
		})
	}
	clients.Wait()
	d.client.CloseIdleConnections()
}

// send asks for a payment until there is an end to it.
func (d *driver) send(ctx context.Context, n int, s sending) {
	rng := rand.New(rand.NewPCG(d.seed, uint64(n)))
	late := time.Now().Add(patience)
	for to := s.worker; ; to = rng.IntN(workers) {
		a, err := d.ask(ctx, &d.payments[s.payment], d.fleet[to])
		if d.note(s.payment, to, &a, err) {
			return
		}
		pause := min(time.Duration(a.retryAfter)*time.Second, longestPause)
		<-time.After(pause/2 + time.Duration(rng.Int64N(int64(pause))/2))
		if time.Now().After(late) {
			d.complainf("payment %d had no end after %v, the last answer was %v", s.payment, patience, &a)
			return
		}
	}
}

// ask sends one request. Nothing sends it again by itself: the transport does
// not do so with a body that it cannot get again (R20).
func (d *driver) ask(ctx context.Context, p *payment, to *worker) (answer, error) {
	body := p.body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.address+"/payments", struct{ io.Reader }{strings.NewReader(body)})
	if err != nil {
		return answer{}, err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", p.key)
	req.Header.Set(accountHeader, p.account)
	if p.slow {
		req.Header.Set(slowHeader, "yes")
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return read(resp, text), nil
}

// read takes apart what came back.
func read(resp *http.Response, text []byte) answer {
	a := answer{
		status: resp.StatusCode, outcome: resp.Header.Get("Semel-Outcome"),
		body: string(text), mediaType: resp.Header.Get("Content-Type"),
	}
	a.retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
	var problem struct {
		Code  string `json:"code"`
		Retry bool   `json:"retry"`
	}
	if a.status >= http.StatusBadRequest && json.Unmarshal(text, &problem) == nil {
		a.code, a.retry = problem.Code, problem.Retry
	}
	return a
}

// note keeps an answer, and reports whether the client's question has an end.
func (d *driver) note(payment, worker int, a *answer, err error) (ended bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.complainLockedf("worker %d gave no answer for payment %d: %v", worker, payment, err)
		return true
	}
	d.answers[a.String()]++
	if !a.final() {
		if wrong := a.problem(d.hold); wrong != "" {
			d.complainLockedf("payment %d was answered %v, which %s: %s", payment, a, wrong, a.body)
			return true
		}
		if a.code == unknownOutcome {
			d.told[payment].unknown++
			return true
		}
		return false
	}
	if a.status < 300 {
		now := time.Now()
		d.outage, d.answered = max(d.outage, now.Sub(d.answered)), now
		d.recovered[worker]++
	}
	d.told[payment].add(a)
	return true
}

// add counts a final answer.
func (t *told) add(a *answer) {
	i := slices.IndexFunc(t.finals, func(f final) bool { return f.status == a.status && f.body == a.body })
	if i < 0 {
		i = len(t.finals)
		t.finals = append(t.finals, final{status: a.status, body: a.body})
	}
	if a.outcome == "executed" {
		t.finals[i].executed++
	} else {
		t.finals[i].replayed++
	}
}

// enoughStray is how many complaints are kept.
const enoughStray = 10

func (d *driver) complainf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.complainLockedf(format, args...)
}

func (d *driver) complainLockedf(format string, args ...any) {
	d.strays++
	if len(d.stray) < enoughStray {
		d.stray = append(d.stray, fmt.Sprintf(format, args...))
	}
}

// down says that the server is, and that all workers are to show that they are
// well again afterwards.
func (d *driver) down() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recovered = [workers]int{}
}
