package check

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// run is one run of the cases against a target.
type run struct {
	target Target
	cfg    Config
	client *http.Client
	random *rand.Rand
	marks  marks
	step   int       // by how much one execution raises what is observed
	next   time.Time // when the next paced request may be sent

	asking sync.Mutex  // held while AuthorizeFunc is asked, by one of those who send at once
	auth   http.Header // the authorization in use

	// What several cases look at, made once.
	shared shared
}

const (
	defaultTimeout = 30 * time.Second
	// controls is how many operations are executed to learn what a reply says of
	// its execution. By chance two small numbers may be the same, three hardly.
	controls = 3
	// longestWait is how long a Retry-After is waited for.
	longestWait = 10 * time.Second
)

// Run tests a target. The error is for a target or config that makes no sense;
// what the API does wrong is in the report.
func Run(ctx context.Context, t Target, cfg Config) (*Report, error) {
	t, err := t.withDefaults()
	if err != nil {
		return nil, err
	}
	selected, err := cfg.Selected()
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	began := time.Now()
	r := &run{target: t, cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), step: 1}
	transport := r.newTransport()
	defer transport.CloseIdleConnections()
	r.client = newClient(transport)
	report := &Report{Target: t.Method + " " + t.URL, Seed: cfg.Seed}
	if report.Setup = r.learn(ctx); report.Setup == "" {
		report.Marks = r.marks.names
		report.Findings = r.all(ctx, selected)
	}
	report.Took = time.Since(began)
	return report, ctx.Err()
}

// newTransport is like that of net/http, with a connection for each request at once
// and neither a proxy nor compression of its own: what is tested is the API.
func (r *run) newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         r.dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 64,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: r.cfg.Timeout,
	}
}

func (r *run) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.cfg.DialContextFunc != nil {
		return r.cfg.DialContextFunc(ctx, network, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Selected returns the cases that Run names. A pattern that fits none is an error.
func (cfg Config) Selected() ([]Case, error) {
	all := Cases()
	patterns := slices.Clone(cfg.Run)
	for pattern := range cfg.Skip {
		patterns = append(patterns, pattern)
	}
	for _, pattern := range patterns {
		if !slices.ContainsFunc(all, func(c Case) bool { return covers(pattern, c.ID) }) {
			return nil, fmt.Errorf("check: no case is called %q or begins with it", pattern)
		}
	}
	if len(cfg.Run) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(c Case) bool {
		return !slices.ContainsFunc(cfg.Run, func(pattern string) bool { return covers(pattern, c.ID) })
	}), nil
}

// learn executes some operations to see that the API works at all, and what in
// a reply tells one execution from another.
func (r *run) learn(ctx context.Context) string {
	s := &session{run: r, began: time.Now()}
	var before int
	var err error
	if r.target.Observe != nil {
		if before, err = r.count(ctx); err != nil {
			return err.Error()
		}
	}
	executed := make([]Exchange, controls)
	for i := range executed {
		executed[i] = s.send(ctx, r.newCall())
		if !executed[i].succeeded() {
			return "a request under a new key must succeed before anything can be tested; it got " + executed[i].result()
		}
	}
	r.marks = newMarks(executed, r.target.Ignore)
	if r.target.Observe == nil {
		return ""
	}
	after, err := r.count(ctx)
	if err != nil {
		return err.Error()
	}
	r.step = (after - before) / controls
	if r.step < 1 || (after-before)%controls != 0 {
		return fmt.Sprintf("%d operations under new keys changed what is counted from %d to %d: it must rise by the same number for each", controls, before, after)
	}
	return ""
}

// all runs the cases one after another: what is counted must be theirs.
func (r *run) all(ctx context.Context, cases []Case) []Finding {
	var findings []Finding
	for _, c := range cases {
		if ctx.Err() != nil {
			return findings
		}
		f := r.one(ctx, c)
		findings = append(findings, f)
		if r.cfg.ProgressFunc != nil {
			r.cfg.ProgressFunc(f)
		}
	}
	return findings
}

func (r *run) one(ctx context.Context, c Case) Finding {
	for pattern, why := range r.cfg.Skip {
		if covers(pattern, c.ID) {
			return skip("%s", why).finding(c, r.cfg.Strict)
		}
	}
	s := &session{run: r, began: time.Now()}
	f := c.run(ctx, s).finding(c, r.cfg.Strict)
	f.History = masked(s.sent)
	return f
}

// authorization returns the fields that AuthorizeFunc gave last.
func (r *run) authorization(ctx context.Context) (http.Header, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.target.AuthorizeFunc == nil || r.auth != nil {
		return r.auth, nil
	}
	auth, err := r.target.AuthorizeFunc(ctx)
	if err != nil {
		return nil, err
	}
	r.auth = auth
	return auth, nil
}

// askAgain has AuthorizeFunc asked for the next request: what it gave has run
// out.
func (r *run) askAgain() {
	r.asking.Lock()
	defer r.asking.Unlock()
	r.auth = nil
}

// pace waits until the next request may be sent.
func (r *run) pace(ctx context.Context) {
	if r.cfg.RequestsPerSecond <= 0 {
		return
	}
	wait(ctx, time.Until(r.next))
	r.next = time.Now().Add(time.Duration(float64(time.Second) / r.cfg.RequestsPerSecond))
}

// waitAsAsked waits for as long as a reply asks; false means that it is too long.
func (r *run) waitAsAsked(ctx context.Context, x Exchange) bool {
	seconds, err := strconv.Atoi(x.ReplyHeader.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	if d := time.Duration(seconds) * time.Second; d <= longestWait {
		return wait(ctx, d)
	}
	return false
}

// wait waits, and reports whether ctx let it.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
