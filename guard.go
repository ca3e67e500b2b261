package semel

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
)

// Config holds the optional settings of a Guard. Zero means the default.
type Config struct {
	// Service is part of every operation id; changing it renames every
	// payment. Printable, without spaces around it. Default DefaultService.
	Service string
	// Lease is how long a claim holds unrenewed; it is renewed at a third of
	// it. At least MinLease. Default DefaultLease.
	Lease time.Duration
	// Retention is how long done and released records are kept, from their
	// end. It is at least HandlerDeadline and Lease together, so that an attempt
	// that was replaced still finds what replaced it. Under Resume(d) it is at
	// least 2d less HandlerDeadline, so that a key never outlives the memory of
	// what the work calls (M9). Default the longest of these and
	// DefaultRetention.
	Retention time.Duration
	// HandlerDeadline ends the context of the work. Default
	// DefaultHandlerDeadline.
	HandlerDeadline time.Duration
	// StoreTimeout bounds each store call. Keep it well below Lease: while one
	// renewal waits for a store that hangs no other is sent, and the lease ends.
	// Default DefaultStoreTimeout.
	StoreTimeout time.Duration
	// SettleDelay is what an operator waits, beyond the handler deadline,
	// before "not applied" is believed (M6). Default DefaultSettleDelay.
	SettleDelay time.Duration
	// Observer is told what happens. Default none.
	Observer Observer
	// Logger gets what no caller is there to be told: the end of work that
	// returned past its deadline, a reply that cannot be saved, and the stack of
	// a panic. It gets neither keys nor scopes. Default slog.Default().
	Logger *slog.Logger
}

// Guard claims keys, runs work once and replays replies. It is safe for
// concurrent use and owns no goroutine beyond the calls in progress.
type Guard struct {
	store        Store
	joiner       Joiner       // nil if the store is none
	atomic       AtomicJoiner // the same
	recovery     Recovery
	resumeWithin time.Duration
	cfg          Config
}

// New returns a guard over store. Recovery is a required choice: see Hold and
// Resume. Errors match ErrConfig and name the field and the bound.
func New(store Store, recovery Recovery, cfg Config) (*Guard, error) {
	if store == nil {
		return nil, configError("store", "is required")
	}
	if err := cfg.complete(store, recovery); err != nil {
		return nil, err
	}
	joiner, _ := As[Joiner](store)
	atomic, _ := As[AtomicJoiner](store)
	return &Guard{
		store:        store,
		joiner:       joiner,
		atomic:       atomic,
		recovery:     recovery,
		resumeWithin: recovery.resumeWithin(cfg.HandlerDeadline),
		cfg:          cfg,
	}, nil
}

// complete fills in the defaults and checks every field once.
func (c *Config) complete(store Store, recovery Recovery) error {
	if c.Service == "" {
		c.Service = DefaultService
	}
	if strings.TrimSpace(c.Service) != c.Service || strings.ContainsFunc(c.Service, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return configError("Service", fmt.Sprintf("is %q; it must be printable, without spaces around it", c.Service))
	}
	for _, d := range []struct {
		name  string
		field *time.Duration
		def   time.Duration
	}{
		{"Lease", &c.Lease, DefaultLease},
		{"HandlerDeadline", &c.HandlerDeadline, DefaultHandlerDeadline},
		{"StoreTimeout", &c.StoreTimeout, DefaultStoreTimeout},
		{"SettleDelay", &c.SettleDelay, DefaultSettleDelay},
	} {
		if err := checkDuration(d.name, *d.field); err != nil {
			return err
		}
		if *d.field == 0 {
			*d.field = d.def
		}
	}
	if c.Lease < MinLease {
		return configError("Lease", fmt.Sprintf("is %v; the least is %v", c.Lease, MinLease))
	}
	if err := recovery.check(c.HandlerDeadline); err != nil {
		return err
	}
	if l, ok := As[Lossy](store); ok && recovery.kind == hold && !l.LossAccepted() {
		return configError("Recovery", fmt.Sprintf("is Hold, but the store (%T, %s) can lose a claim that it has acknowledged, and the work would run again: choose Resume, or accept that where the store is opened", store, ClassOf(store)))
	}
	if l, ok := As[Limited](store); ok && c.StoreTimeout <= l.StatementLimit() {
		return configError("StoreTimeout", fmt.Sprintf("is %v; the store's own limit for a statement is %v, and must be the shorter one", c.StoreTimeout, l.StatementLimit()))
	}
	if err := checkDuration("Retention", c.Retention); err != nil {
		return err
	}
	attempt, memory := c.HandlerDeadline+c.Lease, recovery.leastRetention(c.HandlerDeadline)
	switch {
	case c.Retention == 0:
		c.Retention = max(DefaultRetention, attempt, memory)
	case c.Retention < attempt:
		return configError("Retention", fmt.Sprintf("is %v; HandlerDeadline and Lease together (%v) are the least, or an attempt that was replaced would not find what replaced it", c.Retention, attempt))
	case c.Retention < memory:
		return configError("Retention", fmt.Sprintf("is %v; %v needs at least %v, or a key would outlive the downstream's memory of it", c.Retention, recovery, memory))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// checkDuration refuses what no setting can be. Zero is the default.
func checkDuration(field string, d time.Duration) error {
	switch {
	case d < 0:
		return configError(field, fmt.Sprintf("is %v; it must be positive", d))
	case d > maxDuration:
		return configError(field, fmt.Sprintf("is %v; the most is %v", d, maxDuration))
	}
	return nil
}

// Rules are the guard's settings as its callers need to know them; see Config.
type Rules struct {
	Recovery     Recovery
	ResumeWithin time.Duration // zero: never; Forever: no bound
	Retention    time.Duration
	Lease        time.Duration
	Class        StoreClass
}

// Rules returns the settings in force, defaults filled in.
func (g *Guard) Rules() Rules {
	return Rules{
		Recovery:     g.recovery,
		ResumeWithin: g.resumeWithin,
		Retention:    g.cfg.Retention,
		Lease:        g.cfg.Lease,
		Class:        ClassOf(g.store),
	}
}

// Observe passes e to the guard's observer, for the layers around the guard
// that have something to count. An observer that panics is logged: counting
// must not strand a claim.
func (g *Guard) Observe(ctx context.Context, e Event) {
	if g.cfg.Observer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			g.cfg.Logger.Error("semel: the observer panicked", "event", e.Kind.String(), "panic", fmt.Sprint(p))
		}
	}()
	g.cfg.Observer.Observe(ctx, e)
}

// Mode says where the reply is saved.
type Mode uint8

// The modes.
const (
	// Leased saves the reply in a commit of its own, after the work.
	Leased Mode = iota
	// Joined saves the reply in the transaction of the work, which the work
	// gets from the store's Tx function. It needs a store that is a Joiner.
	Joined
	// Atomic claims the key there too: one commit in all, and a crash leaves
	// nothing. It is for work whose effects are all in that transaction, and
	// needs a store that is an AtomicJoiner. A repeat that comes while the
	// first attempt runs is told OutcomeInProgress, also if it is another
	// request.
	Atomic
)

// String returns "leased", "joined" or "atomic".
func (m Mode) String() string {
	switch m {
	case Joined:
		return "joined"
	case Atomic:
		return "atomic"
	}
	return "leased"
}

// CheckMode reports, as an ErrConfig, that the guard's store cannot run mode
// m. Callers ask at construction, so that nothing fails at first use.
func (g *Guard) CheckMode(m Mode) error {
	switch {
	case m > Atomic:
		return configError("Mode", fmt.Sprintf("is %d; it must be Leased, Joined or Atomic", m))
	case m == Joined && g.joiner == nil:
		return configError("Mode", fmt.Sprintf("is Joined, but the store (%T) cannot save a reply in a business transaction", g.store))
	case m == Atomic && g.atomic == nil:
		return configError("Mode", fmt.Sprintf("is Atomic, but the store (%T) cannot claim in a business transaction", g.store))
	}
	return nil
}

// Call is one request to run something once.
type Call struct {
	// Scope and Key name the operation; both are required.
	Scope string
	Key   string
	// Fingerprint tells this request from others under the same key.
	Fingerprint Fingerprint
	// Refingerprint returns the request's fingerprint under an older policy
	// that a record was saved with, or false if it is not loaded any more
	// (R21). Nil knows no older policy.
	Refingerprint func(policy string) (Fingerprint, bool)
	// Credential is an HMAC of the caller's credential, where the scope does
	// not tell callers apart (R4).
	Credential Digest
	// Trace is a W3C traceparent, kept with the first attempt.
	Trace string
	// Route is passed on to the Observer with what becomes of the call: the
	// template of a route, such as "/orders/{id}". It is one of few, and
	// never made of what a request says.
	Route string
	// BeforeReplay, if set, may refuse a saved reply to this caller (R27).
	BeforeReplay func(Record) error
	// Mode is Leased, Joined or Atomic.
	Mode Mode
	// AllInTx declares that every effect of the work is in the joined
	// transaction, so that a rollback is known to have undone it all (M1). It
	// goes with Joined; of Atomic it is true without being said.
	AllInTx bool
}

// Outcome says what became of a call.
type Outcome uint8

// The outcomes of a call.
const (
	// OutcomeExecuted: this call ran the work and the operation is done.
	OutcomeExecuted Outcome = iota + 1
	// OutcomeReplayed: the operation was done before; this is its saved reply.
	OutcomeReplayed
	// OutcomeReplyNotKept: the operation was done before; its reply was not kept.
	OutcomeReplyNotKept
	// OutcomeInProgress: another attempt is running.
	OutcomeInProgress
	// OutcomeKeyReused: the key belongs to another request.
	OutcomeKeyReused
	// OutcomeOtherCaller: the key belongs to another credential.
	OutcomeOtherCaller
	// OutcomeUnknown: an attempt has no known end: this call's own, if
	// Result.Ran, or an earlier one that may not be run again.
	OutcomeUnknown
	// OutcomeReleased: the work is known to have had no effect; the key is free.
	OutcomeReleased
)

var outcomeNames = [...]string{
	"none", "executed", "replayed", "reply-not-kept", "in-progress", "key-reused", "other-caller", "unknown", "released",
}

// String returns the outcome in words.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// Result is the outcome of a call. Errors are for faults only: the store, the
// configuration, a deadline.
type Result struct {
	Outcome Outcome
	// Ran is set when this call ran the work, and no later attempt has taken
	// over: the outcome is of its own run then.
	Ran bool
	// Takeover is set with Ran when an earlier attempt had no known end when
	// this call ran the work.
	Takeover bool
	// Reply is the work's own reply if this call ran it, else the saved one
	// if there is one. Of OutcomeReplyNotKept it holds the status alone.
	Reply Reply
	// Record is the record as the call last saw it, without its reply.
	Record Record
	// RetryAfter is how long to wait before the same key is worth sending
	// again, for OutcomeInProgress.
	RetryAfter time.Duration
	// UnknownPolicy qualifies OutcomeKeyReused: the record's fingerprint policy is
	// not loaded, so the two requests could not be compared.
	UnknownPolicy bool
}

// Done reports whether the operation is done and Reply is its reply. A call
// that returns no error need not be: the key may be in use, or the outcome
// unknown.
func (r Result) Done() bool { return r.Outcome == OutcomeExecuted || r.Outcome == OutcomeReplayed }

// Run claims call's key and runs work once, or answers from the record. The
// work's context is not cancelled with ctx: a caller that hangs up does not
// undo what it asked for. It has a deadline of its own, and is cancelled with
// ErrSuperseded when a later attempt exists.
//
// Run returns when the work has returned and its end is saved, or, with
// ErrStillRunning, at the handler deadline; the claim is then kept until the
// work returns. A panic of the work passes through, its outcome saved as
// unknown.
//
// Errors match ErrKeyInvalid, ErrScopeInvalid or ErrConfig for a call that
// cannot be run; ErrStoreUnavailable, with the zero Result if nothing ran;
// ErrReplayRefused; ErrStillRunning; ErrCommitRefused in joined mode; and
// ErrGoexit.
func (g *Guard) Run(ctx context.Context, call Call, work func(ctx context.Context) Completion) (Result, error) {
	if err := call.check(); err != nil {
		return Result{}, err
	}
	if err := g.CheckMode(call.Mode); err != nil {
		return Result{}, err
	}
	a := newAttempt(ctx, g, call)
	begun, err := a.begin()
	if err != nil {
		return Result{}, err
	}
	if begun.Outcome == BeginClaimed {
		g.observeClaim(ctx, call, begun)
		a.record, a.takeover = begun.Record, begun.takeover()
		return a.run(work)
	}
	return g.answer(ctx, call, begun)
}

func (c *Call) check() error {
	switch {
	case c.Key == "":
		return ErrKeyInvalid.saying("the key is empty")
	case len(c.Key) > MaxKeyLength:
		return ErrKeyInvalid.saying("the key has %d bytes; the most is %d", len(c.Key), MaxKeyLength)
	case c.Scope == "":
		return ErrScopeInvalid.saying("the scope is empty")
	case len(c.Scope) > MaxScopeLength:
		return ErrScopeInvalid.saying("the scope has %d bytes; the most is %d", len(c.Scope), MaxScopeLength)
	case c.Fingerprint.problem() != "":
		return configError("Fingerprint", "is required, or any request under the key would pass for this one: "+c.Fingerprint.problem())
	case c.AllInTx && c.Mode != Joined:
		return configError("AllInTx", "goes with Mode Joined only")
	}
	return nil
}

// allInTx reports whether every effect of the work is in its transaction.
func (c *Call) allInTx() bool { return c.Mode == Atomic || c.Mode == Joined && c.AllInTx }

// beginTries is how often one Begin is sent. The token makes the repeat safe:
// it finds the claim that an unanswered try may have won.
const beginTries = 3

// beginner is a Store, or an attempt that claims in its own transaction.
type beginner interface {
	Begin(ctx context.Context, p BeginParams) (BeginResult, error)
}

// beginOnce sends one Begin, repeating it while ctx lasts, which it ends.
func (g *Guard) beginOnce(ctx *detachedContext, to beginner, p BeginParams) (BeginResult, error) {
	defer ctx.cancel(context.Canceled)
	var (
		res BeginResult
		err error
	)
	for range beginTries {
		res, err = to.Begin(ctx, p)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return BeginResult{}, g.storeFault(ctx, err)
	}
	return res, nil
}

// storeContext is a context for one store call: bounded by StoreTimeout, and
// not cancelled when the caller hangs up. Whoever takes it cancels it.
func (g *Guard) storeContext(caller context.Context) *detachedContext {
	c := new(detachedContext)
	g.initStoreContext(c, caller)
	return c
}

// initStoreContext makes c, which is part of something larger, such a context.
func (g *Guard) initStoreContext(c *detachedContext, caller context.Context) {
	c.values, c.late = caller, context.DeadlineExceeded
	c.deadline = time.Now().Add(g.cfg.StoreTimeout)
}

func (g *Guard) storeFault(ctx context.Context, err error) error {
	g.Observe(ctx, Event{Kind: EventStoreFault, Err: err})
	return unavailable(err)
}

// takeover reports whether a claim follows an attempt without a known end. One
// whose answer was lost, and which its token finds again, shows it by being open.
func (b *BeginResult) takeover() bool {
	return b.From == StateRunning || b.From == StateUnknown || b.Record.Open
}

func (g *Guard) observeClaim(ctx context.Context, call Call, begun BeginResult) {
	kind := EventClaimed
	switch {
	case begun.takeover():
		kind = EventTakeover
	case begun.From == StateReleased:
		kind = EventReclaimed
	}
	g.Observe(ctx, Event{Kind: kind, Route: call.Route, OperationID: begun.Record.OperationID, Attempt: begun.Record.Attempt})
}

// answer turns what a Begin that did not claim found into a result.
func (g *Guard) answer(ctx context.Context, call Call, begun BeginResult) (Result, error) {
	rec := begun.Record
	res := Result{}
	kind := EventOutcomeUnknown
	switch begun.Outcome {
	case BeginReplay:
		if call.BeforeReplay != nil {
			if err := call.BeforeReplay(rec); err != nil {
				return Result{Record: rec.withoutReply()}, ErrReplayRefused.because(unmarked(err))
			}
		}
		res.Reply = rec.Reply
		res.Outcome, kind = OutcomeReplayed, EventReplayed
		if !rec.ReplyKept {
			res.Outcome, kind = OutcomeReplyNotKept, EventReplyNotKept
		}
	case BeginBusy:
		res.Outcome, kind = OutcomeInProgress, EventInProgress
		// Where whoever holds it has lapsed since it is worth trying at once.
		res.RetryAfter = max(0, min(rec.LeaseLeft(), max(time.Second, rec.AttemptAge())))
	case BeginMismatch:
		res.Outcome, kind = OutcomeKeyReused, EventKeyReused
		res.UnknownPolicy = call.policyUnknown(rec.Fingerprint.Policy)
		if rec.Credential != call.Credential {
			res.Outcome, kind = OutcomeOtherCaller, EventOtherCaller
		}
	case BeginReleased:
		res.Outcome, kind = OutcomeReleased, EventReleased
	default:
		res.Outcome = OutcomeUnknown
	}
	res.Record = rec.withoutReply()
	e := Event{Kind: kind, Route: call.Route, OperationID: rec.OperationID, Attempt: rec.Attempt}
	switch begun.Outcome {
	case BeginReplay:
		e.ReplyAge = rec.Now.Sub(rec.Finished)
	case BeginReleased:
		e.SinceFirst = rec.Finished.Sub(rec.FirstStarted)
	}
	g.Observe(ctx, e)
	return res, nil
}

func (c *Call) policyUnknown(policy string) bool {
	if policy == c.Fingerprint.Policy {
		return false
	}
	if c.Refingerprint == nil {
		return true
	}
	_, ok := c.Refingerprint(policy)
	return !ok
}

// Get reads the record of (scope, key). Where there is none its state is
// StateAbsent. Errors match ErrStoreUnavailable.
func (g *Guard) Get(ctx context.Context, scope, key string) (Record, error) {
	call := g.storeContext(ctx)
	defer call.cancel(context.Canceled)
	rec, err := g.store.Get(call, scope, key)
	if err != nil {
		return Record{}, g.storeFault(ctx, err)
	}
	return rec, nil
}
