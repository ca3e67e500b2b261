package storetest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// The durations of the tests. They are large because stores on a real clock
// also lose the time that the test itself takes: slack is more than that.
const (
	slack        = 10 * time.Minute
	lease        = 2 * time.Hour
	lapse        = lease + slack // after which a lease has run out
	resumeWithin = 7 * 24 * time.Hour
	retention    = 30 * 24 * time.Hour
)

// scope is that of all tests that are not about scopes.
const scope = "storetest"

// racers is how many goroutines race in one test.
const racers = 64

// subject is the store under test, with its calls made short. A method that
// fails ends the test, so that only the test's goroutine may call it.
type subject struct {
	*testing.T
	h        Harness
	store    semel.Store
	workers  []*process
	advanced time.Duration
}

func newSubject(t *testing.T, h Harness) *subject {
	t.Helper()
	return &subject{T: t, h: h, store: h.New(t)}
}

// params are those of a new request for key, under Hold.
func params(key string) semel.BeginParams {
	return semel.BeginParams{
		Scope:       scope,
		Key:         key,
		Fingerprint: semel.FingerprintOf([]byte(key)),
		Token:       semel.NewToken(),
		OperationID: semel.NewOperationID(semel.DefaultService, scope, key, 0),
		Lease:       lease,
	}
}

// resuming are those of a new request for key, under Resume.
func resuming(key string) semel.BeginParams {
	p := params(key)
	p.ResumeWithin = resumeWithin
	return p
}

var (
	toUnknown   = semel.FinishParams{To: semel.StateUnknown, Retention: retention}
	toReleased  = semel.FinishParams{To: semel.StateReleased, Retention: retention}
	toDone      = toDoneWith(semel.Reply{Status: 201, Header: semel.Header{"Location": {"/1"}}, Body: []byte("made")})
	toDoneNoRep = semel.FinishParams{To: semel.StateDone, Retention: retention, Reply: semel.Reply{Status: 202}}
)

func toDoneWith(r semel.Reply) semel.FinishParams {
	return semel.FinishParams{To: semel.StateDone, KeepReply: true, Reply: r, Retention: retention}
}

func (s *subject) begin(p semel.BeginParams) semel.BeginResult {
	s.Helper()
	res, err := s.store.Begin(s.Context(), p)
	assert.NoError(s, err, "Begin")
	return res
}

// want begins and checks the outcome.
func (s *subject) want(p semel.BeginParams, want semel.BeginOutcome) semel.BeginResult {
	s.Helper()
	res := s.begin(p)
	if res.Outcome != want {
		s.Fatalf("got outcome %v with the record %v, want %v", res.Outcome, res.Record.State, want)
	}
	return res
}

// claim begins a request that must be claimed.
func (s *subject) claim(p semel.BeginParams) semel.Record {
	s.Helper()
	res := s.want(p, semel.BeginClaimed)
	assert.Equal(s, res.Record.Token, p.Token, "token of the claim")
	return res.Record
}

func (s *subject) extend(r semel.Record, p semel.ExtendParams) semel.Held {
	s.Helper()
	held, err := s.store.Extend(s.Context(), r.Claim(), p)
	assert.NoError(s, err, "Extend")
	return held
}

func (s *subject) finish(r semel.Record, p semel.FinishParams) semel.Held {
	s.Helper()
	held, err := s.store.Finish(s.Context(), r.Claim(), p)
	assert.NoError(s, err, "Finish")
	return held
}

// end finishes a claim that must be held, with the outcome asked for.
func (s *subject) end(r semel.Record, p semel.FinishParams) {
	s.Helper()
	wantHeld(s, s.finish(r, p), semel.HeldYes, p.To)
}

func (s *subject) get(key string) semel.Record {
	s.Helper()
	rec, err := s.store.Get(s.Context(), scope, key)
	assert.NoError(s, err, "Get")
	return rec
}

func (s *subject) sweep(limit int) int {
	s.Helper()
	n, err := s.store.Sweep(s.Context(), limit)
	assert.NoError(s, err, "Sweep")
	return n
}

// advance moves the store's clock, in every process that has it open.
func (s *subject) advance(d time.Duration) {
	s.Helper()
	s.advanceHere(d)
	for _, w := range s.workers {
		w.advance(s, d)
	}
}

// advanceHere moves it in this process alone, and in workers yet to start:
// those that run may be frozen.
func (s *subject) advanceHere(d time.Duration) {
	s.Helper()
	s.h.Advance(s.T, s.store, d)
	s.advanced += d
}

// lapse lets every lease run out.
func (s *subject) lapse() {
	s.Helper()
	s.advance(lapse)
}

// unchanged checks that the record is still what before says.
func (s *subject) unchanged(before semel.Record) {
	s.Helper()
	after, err := s.store.Get(s.Context(), before.Scope, before.Key)
	assert.NoError(s, err, "Get")
	assert.Equal(s, plain(after), plain(before), "the record")
}

func wantHeld(s *subject, got semel.Held, status semel.HeldStatus, state semel.State) {
	s.Helper()
	if got.Status != status || got.State != state {
		s.Errorf("got %s with the record %v, want %s with the record %v", got.Status, got.State, status, state)
	}
}

// near checks an instant or a duration, both as durations, within slack.
func near(s *subject, got, want time.Duration, what string) {
	s.Helper()
	if (got - want).Abs() > slack {
		s.Errorf("%s:\ngot  %v\nwant %v, give or take %v", what, got, want, slack)
	}
}

// plain is r in a form in which reads at different times are equal.
func plain(r semel.Record) semel.Record {
	for _, at := range []*time.Time{&r.Created, &r.FirstStarted, &r.Claimed, &r.Renewed, &r.LeaseEnd, &r.Finished, &r.Expires} {
		*at = at.Round(0).UTC()
	}
	r.Now = time.Time{}
	r.Reply = normal(r.Reply)
	return r
}

// normal is r with none for what is empty: no store need tell the two apart.
func normal(r semel.Reply) semel.Reply {
	if len(r.Body) == 0 {
		r.Body = nil
	}
	if len(r.Header) == 0 {
		r.Header = nil
	}
	r.Body = slices.Clone(r.Body)
	r.Header = maps.Clone(r.Header)
	return r
}

// situation is a way for a record to be when the next request comes.
type situation struct {
	name string
	// make brings the key of p there and returns the record of its claim.
	make func(s *subject, p semel.BeginParams) semel.Record
}

// ended returns the situation after a first attempt that finished with p.
func ended(name string, p semel.FinishParams) situation {
	return situation{name, func(s *subject, b semel.BeginParams) semel.Record {
		s.Helper()
		rec := s.claim(b)
		s.end(rec, p)
		return rec
	}}
}

var (
	running = situation{"running", func(s *subject, p semel.BeginParams) semel.Record {
		s.Helper()
		return s.claim(p)
	}}
	lapsed = situation{"lapsed", func(s *subject, p semel.BeginParams) semel.Record {
		s.Helper()
		rec := s.claim(p)
		s.lapse()
		return rec
	}}
	unknown     = ended("unknown", toUnknown)
	released    = ended("released", toReleased)
	done        = ended("done", toDone)
	doneNoReply = ended("done without a reply", toDoneNoRep)

	situations = []situation{running, lapsed, unknown, released, done, doneNoReply}
)

// inEach makes one rule of each situation: name says what holds "of a record
// that is" so.
func inEach(name string, of []situation, test func(s *subject, in situation)) []rule {
	rules := make([]rule, 0, len(of))
	for _, in := range of {
		rules = append(rules, rule{name: name + " that is " + in.name, test: func(s *subject) { test(s, in) }})
	}
	return rules
}
