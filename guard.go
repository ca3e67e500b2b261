package semel

import (
	"context"
	"fmt"
	"log/slog"
	"math"
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
	maxReply     int64        // that the store can save
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
	maxReply := int64(math.MaxInt64)
	if b, ok := As[Bounded](store); ok {
		maxReply = b.MaxReply()
	}
	return &Guard{
		store:        store,
		joiner:       joiner,
		atomic:       atomic,
		maxReply:     maxReply,
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
