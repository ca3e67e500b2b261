package redisstore

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/testhook"
)

var (
	_ semel.Store   = (*Store)(nil)
	_ semel.Classed = (*Store)(nil)
	_ semel.Lossy   = (*Store)(nil)
	_ semel.Limited = (*Store)(nil)
	_ semel.Bounded = (*Store)(nil)
	_ semel.Auditor = (*Store)(nil)
)

const (
	// DefaultPrefix begins the name of everything that is stored.
	DefaultPrefix = "semel"
	// MaxReplySize is the most bytes of a reply that are saved: one script has to
	// have them written, while the server answers nobody else.
	MaxReplySize = 16 << 20
	// MaxPrefixLength is the length of the longest prefix, in bytes.
	MaxPrefixLength = 64
)

// statementLimit is for how long after it was sent a step may still run on the
// server. It is shorter than semel.DefaultStoreTimeout, so that a caller who
// gave up knows that nothing is still to run (R15).
const statementLimit = 3 * time.Second

// Config holds the optional settings of a Store. Zero means the default.
type Config struct {
	// Prefix begins the name of everything that is stored. Two stores with
	// different prefixes have nothing in common. Default DefaultPrefix; at
	// most MaxPrefixLength bytes, without braces.
	Prefix string
	// AcceptLoss accepts that a claim that was acknowledged is lost in a
	// failover, so that work runs twice: a guard with semel.Hold is refused
	// otherwise (R9).
	AcceptLoss bool
	// AssumeNoEviction says that the server evicts no records, where it does
	// not tell: a server that forbids INFO is refused otherwise.
	AssumeNoEviction bool
	// Logger is told what is found out about the servers. Default
	// slog.Default().
	Logger *slog.Logger
	// Hooks are for the tests of this module: they move the store's clock.
	// Their type is internal, so that nobody else can set them.
	Hooks testhook.Hooks
}

// Store is a semel.Store in Redis. It is safe for concurrent use. Errors of all
// its methods match semel.ErrStoreUnavailable.
type Store struct {
	client rueidis.Client
	owned  bool   // by the store, which closes it
	conns  *conns // of one server, by Open; else nil
	cfg    Config
	class  semel.StoreClass
	most   int64 // bytes of a reply
	tags   *[buckets]string
	clocks *clocks
	shift  string // of the clock, in a test: the end of the name it is stored under
}

// Open connects to a server or a cluster and returns a store on it:
//
//	redis://user:password@host:6379/0
//	redis-cluster://user:password@host:6379?addr=host2:6379&addr=host3:6379
//
// and rediss: and rediss-cluster: for TLS. Behind Sentinel, make a client and
// use New. Errors match semel.ErrConfig if a setting or the server's own is
// refused, else semel.ErrStoreUnavailable. Close the store in the end.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	opts, err := clientOptions(url)
	if err != nil {
		return nil, err
	}
	known := &conns{open: map[*leavable]struct{}{}}
	if opts.ForceSingleClient {
		opts.DialCtxFn = known.through(opts.DialCtxFn)
	}
	client, err := rueidis.NewClient(opts)
	if err != nil {
		if client != nil {
			client.Close()
		}
		return nil, unavailable(err)
	}
	s, err := New(ctx, client, cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	s.owned = true
	if opts.ForceSingleClient {
		s.conns = known
	}
	return s, nil
}

// New returns a store on the server or the cluster of a client, which it does
// not close. It asks the servers whether they keep what they are given.
func New(ctx context.Context, client rueidis.Client, cfg Config) (*Store, error) {
	if client == nil {
		return nil, configError("client is required")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Store{client: client, cfg: cfg, tags: tagsOf(cfg.Prefix), clocks: newClocks()}
	if cfg.Hooks.ClockShift != "" {
		s.shift = ":" + cfg.Hooks.ClockShift
	}
	var err error
	if err = s.inspect(ctx); err != nil {
		return nil, err
	}
	// Every bucket is asked once: its slot is served, and its clock is known.
	if _, _, err := s.due(ctx, 1); err != nil {
		return nil, unavailable(err)
	}
	return s, nil
}

// Close ends the connections of a store that Open has made.
func (s *Store) Close() error {
	if s.owned {
		s.client.Close()
	}
	return nil
}

// complete fills in the defaults and checks every field once.
func (c *Config) complete() error {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if len(c.Prefix) > MaxPrefixLength {
		return configError("Prefix has %d bytes; the most is %d", len(c.Prefix), MaxPrefixLength)
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		return configError("Prefix is %q; it must have no braces, which say where a name is kept in a cluster", c.Prefix)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// clientOptions are those of a client for url.
func clientOptions(url string) (rueidis.ClientOption, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	single := scheme == "redis" || scheme == "rediss"
	cluster := strings.TrimSuffix(scheme, "-cluster")
	if !single && (cluster == scheme || cluster != "redis" && cluster != "rediss") {
		return rueidis.ClientOption{}, configError("the URL's scheme is %q; it must be redis, rediss, redis-cluster or rediss-cluster", scheme)
	}
	opts, err := rueidis.ParseURL(cluster + "://" + rest)
	if err != nil {
		// The error may show the URL, and a password in it.
		return opts, configError("the URL cannot be read: it is %s://user:password@host:port/database", scheme)
	}
	opts.ForceSingleClient = single
	opts.DisableCache = true // nothing is read twice; and it would need RESP3
	opts.DisableRetry = true // of a step it is the guard's to say
	opts.ConnWriteTimeout = semel.DefaultStoreTimeout
	if opts.ClientName == "" {
		opts.ClientName = "semel"
	}
	return opts, nil
}

// StatementLimit returns for how long after it was sent a step may still run:
// it carries that time, on the server's clock, and does nothing later.
func (s *Store) StatementLimit() time.Duration { return statementLimit }

// MaxReply returns the most bytes of a reply that are saved: MaxReplySize, or
// what the servers take (proto-max-bulk-len) if that is less.
func (s *Store) MaxReply() int64 { return s.most }

// Class returns semel.DurableUnlessFailover where every server writes a step to
// its disk before it answers (appendfsync always), else semel.BestEffort.
func (s *Store) Class() semel.StoreClass { return s.class }

// LossAccepted returns Config.AcceptLoss.
func (s *Store) LossAccepted() bool { return s.cfg.AcceptLoss }

// Begin claims p's key or says why it cannot be claimed: in one round trip
// where the key is new and where nothing is to be written, else in two.
func (s *Store) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	g := noRecord()
	if p.Force != nil {
		g = nil
	}
	var res semel.BeginResult
	rec, err := s.change(ctx, s.placeOf(p.Scope, p.Key), p.Token, g, func(r *row) (verb, *semel.AuditEntry) {
		var changed bool
		res, changed = r.record.Begin(p)
		return writeIf(changed), p.AuditEntry(&res)
	})
	if err != nil {
		return semel.BeginResult{}, unavailable(err)
	}
	res.Record = rec
	return res, nil
}

// Extend renews the lease of c, in one round trip while it runs.
func (s *Store) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	return s.hold(ctx, c, ownClaim(c), func(r *semel.Record) (semel.Held, bool, *semel.AuditEntry) {
		held, changed := r.Extend(c, p)
		return held, changed, nil
	})
}

// Finish ends c, in one round trip while it runs.
func (s *Store) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	g := ownClaim(c)
	if p.Settlement != nil {
		g = nil // what it does depends on more of the record
	}
	return s.hold(ctx, c, g, func(r *semel.Record) (semel.Held, bool, *semel.AuditEntry) {
		held, changed := r.Finish(c, p)
		return held, changed, p.AuditEntry(r, changed)
	})
}

// hold changes the record of a claim.
func (s *Store) hold(ctx context.Context, c semel.Claim, g *guess, apply func(*semel.Record) (semel.Held, bool, *semel.AuditEntry)) (semel.Held, error) {
	var held semel.Held
	_, err := s.change(ctx, s.placeOf(c.Scope, c.Key), c.Token, g, func(r *row) (verb, *semel.AuditEntry) {
		var (
			changed bool
			entry   *semel.AuditEntry
		)
		held, changed, entry = apply(&r.record)
		return writeIf(changed), entry
	})
	if err != nil {
		return semel.Held{}, unavailable(err)
	}
	return held, nil
}

// Get reads the record as it is.
func (s *Store) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	rec, err := s.change(ctx, s.placeOf(scope, key), semel.Token{}, nil, nothing)
	if err != nil {
		return semel.Record{}, unavailable(err)
	}
	return rec, nil
}
