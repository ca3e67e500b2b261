package check

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
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
	next   time.Time // when the next paced request may be sent

	// What was learnt before the first case.
	marks    marks
	step     int           // by how much one execution raises what is observed
	redirect int           // the redirection that is the reply to what was done; 0 for none
	repeated Exchange      // what the repetition of an operation gets that has its reply
	slowest  time.Duration // how long an operation takes
	executed Exchange      // the first of the operations

	asking sync.Mutex      // held while AuthorizeFunc is asked, by one of those who send at once
	auth   http.Header     // the authorization in use
	proofs map[string]bool // the fields that AuthorizeFunc has ever given

	// What several cases look at, made once.
	shared shared
}

// longestWait is how long in all the Retry-After of one request is waited for.
const longestWait = 10 * time.Second

// Run tests a target. The error is for a target or config that makes no sense, or
// that of a ctx that ended early: the report then holds what was found until
// then. What the API does wrong is in the report.
func Run(ctx context.Context, t Target, cfg Config) (*Report, error) {
	t, err := t.withDefaults()
	if err != nil {
		return nil, err
	}
	selected, err := cfg.Selected()
	if err != nil {
		return nil, err
	}
	if err := cfg.inBounds(); err != nil {
		return nil, err
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, DefaultRequestTimeout)
	began := time.Now()
	r := &run{target: t, cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), step: 1}
	transport := r.newTransport(r.dial)
	defer transport.CloseIdleConnections()
	r.client = newClient(transport)
	report := &Report{Target: t.Method + " " + MaskedURL(t.URL), Run: cfg.Run, Seed: cfg.Seed, Cases: len(selected)}
	if t.Observe != nil {
		report.CountedBy = t.Observe.Pointer + " at " + MaskedURL(t.Observe.URL)
	}
	limited, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	report.Setup = r.learn(limited)
	report.Marks = r.marks.names
	if report.Setup == "" {
		report.Findings = r.all(limited, selected)
	}
	switch {
	case ctx.Err() != nil:
		report.Interrupted = "it was stopped"
	case limited.Err() != nil:
		report.Interrupted = "it was not done after " + cfg.Timeout.String()
	}
	if report.Interrupted != "" && len(report.Findings) == 0 {
		report.Setup = "" // whatever was under way failed of the end
	}
	report.Took = time.Since(began)
	return report, ctx.Err()
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

// all runs the cases one after another: what is counted must be theirs. A case
// that ctx ended tells nothing.
func (r *run) all(ctx context.Context, cases []Case) []Finding {
	var findings []Finding
	for i, c := range cases {
		if r.cfg.ProgressFunc != nil {
			r.cfg.ProgressFunc(i+1, len(cases), c)
		}
		f := r.one(ctx, c)
		if ctx.Err() != nil {
			break
		}
		findings = append(findings, f)
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
	f.History = r.masked(s.sent)
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
	if r.proofs == nil {
		r.proofs = make(map[string]bool)
	}
	for name := range auth {
		r.proofs[name] = true
	}
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

// asked is how long a reply asks to wait: a second at least, also where it asks for
// none or in another form, so that a limit is not run against without a pause.
func (x Exchange) asked() time.Duration {
	// What is no number is read as 0, and one that is too large as the largest.
	seconds, _ := strconv.Atoi(x.ReplyHeader.Get("Retry-After"))
	return time.Second * time.Duration(min(max(seconds, 1), int(longestWait/time.Second)+1))
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
