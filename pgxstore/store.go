package pgxstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/testhook"
)

var (
	_ semel.Store   = (*Store)(nil)
	_ semel.Classed = (*Store)(nil)
	_ semel.Auditor = (*Store)(nil)
	_ semel.Limited = (*Store)(nil)
	_ semel.Bounded = (*Store)(nil)
)

// Store is a semel.Store in PostgreSQL. It is safe for concurrent use.
//
// Errors of all its methods match semel.ErrStoreUnavailable. The context bounds
// the wait for a connection as well as the statements. The server gives a
// statement up after StatementLimit, and none is sent that the caller would not
// wait out (R15).
type Store struct {
	own, tx *pgxpool.Pool
	class   semel.StoreClass
	sql     statements
	local   []string // settings that each transaction is told, behind a pooler
	hooks   testhook.Hooks
}

// Open returns a store over the database of url, which was migrated. See [New].
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	base, err := parse(url)
	if err != nil {
		return nil, err
	}
	return New(ctx, base, cfg)
}

// parse hides what an URL that cannot be read has in it: a password.
func parse(url string) (*pgxpool.Config, error) {
	base, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, semel.NewError(semel.CodeConfig, err, "pgxstore: the URL cannot be used")
	}
	return base, nil
}

// New returns a store over a database that was migrated. From base, which
// pgxpool.ParseConfig has made, it takes how to connect, and what is done with
// a connection (AfterConnect registers the types of business code); the sizes
// of the pools are those of cfg. Errors match semel.ErrConfig if a setting is
// refused or the schema is not the one that this version needs, else
// semel.ErrStoreUnavailable.
//
// The pools' own goroutines run until Close.
func New(ctx context.Context, base *pgxpool.Config, cfg Config) (*Store, error) {
	if base == nil {
		return nil, configError("base is required: see pgxpool.ParseConfig")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	own, tx, err := cfg.pools(ctx, base)
	if err != nil {
		return nil, err
	}
	s := &Store{own: own, tx: tx, class: cfg.Class, hooks: cfg.Hooks}
	if cfg.TransactionPooler {
		s.local = localSettings
	}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close waits until all connections are given back, and closes them.
func (s *Store) Close() {
	s.tx.Close()
	s.own.Close()
}

// StatementLimit returns after how long PostgreSQL gives a statement of the
// store up.
func (s *Store) StatementLimit() time.Duration { return statementLimit }

// maxReply is what a busy server still saves within statementLimit: a reply that
// could not be saved would run again. PostgreSQL itself takes a gigabyte.
const maxReply = 16 << 20

// MaxReply returns the most bytes of a reply that are saved.
func (s *Store) MaxReply() int64 { return maxReply }

// Class returns what Config said, or semel.BestEffort where the server
// acknowledges what is not on its disk.
func (s *Store) Class() semel.StoreClass { return s.class }

// renewRunning is [semel.Record.Extend] for the one case that heartbeats are
// made of: the holder's own running claim.
const renewRunning = `WITH ` + clock + `
UPDATE semel_records SET version = version + 1, renewed = clock.now, lease_end = clock.now + $5::bigint, reply_started = reply_started OR $6::boolean
FROM clock WHERE scope = $1::bytea AND idempotency_key = $2::bytea AND token = $3::bytea AND attempt = $4::bigint AND state = 1`

func renewArgs(c semel.Claim, p semel.ExtendParams) []any {
	return []any{[]byte(c.Scope), []byte(c.Key), c.Token[:], c.Attempt, p.Lease.Microseconds(), p.ReplyStarted}
}

// Extend renews the lease of c.
func (s *Store) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	n, err := s.exec(ctx, s.sql.renew, renewArgs(c, p)...)
	if err != nil {
		return semel.Held{}, unavailable(err)
	}
	if n == 1 {
		return semel.Held{Status: semel.HeldYes, State: semel.StateRunning}, nil
	}
	var held semel.Held
	err = s.change(ctx, c.Scope, c.Key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		held, changed = r.Extend(c, p)
		return changed, nil
	})
	return held, err
}

// endColumns are those that an end without a settlement writes.
const endColumns = `version = version + 1, state = $5::smallint, finished = clock.now, expires = clock.now + $6::bigint,
	reply_kept = $7::boolean, status = $8::integer, header = $9::bytea, body = $10::bytea`

// finishRunning is [semel.Record.Finish] for the holder's own running claim
// that has nothing open behind it.
const finishRunning = `WITH ` + clock + `
UPDATE semel_records SET ` + endColumns + `
FROM clock WHERE scope = $1::bytea AND idempotency_key = $2::bytea AND token = $3::bytea AND attempt = $4::bigint AND state = 1 AND NOT is_open`

// endArgs are the arguments of endColumns and of the claim before them, and
// whether p ends a running claim at all.
func endArgs(c semel.Claim, p semel.FinishParams) (args []any, ends bool, err error) {
	r := semel.Record{State: semel.StateRunning, Token: c.Token, Attempt: c.Attempt, Now: epoch}
	if _, ends = r.Finish(c, p); !ends {
		return nil, false, nil
	}
	header, err := r.Reply.Header.MarshalText()
	return []any{
		[]byte(c.Scope), []byte(c.Key), c.Token[:], c.Attempt,
		int16(r.State), micros(r.Expires), r.ReplyKept, int32(r.Reply.Status), notNull(header), notNull(r.Reply.Body), //nolint:gosec // a status has three digits.
	}, true, err
}

// Finish ends c in a commit of its own.
func (s *Store) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	args, ends, err := endArgs(c, p)
	if err == nil && ends && p.Settlement == nil {
		var n int64
		if n, err = s.exec(ctx, s.sql.finish, args...); err == nil && n == 1 {
			return semel.Held{Status: semel.HeldYes, State: p.To}, nil
		}
	}
	if err != nil {
		return semel.Held{}, unavailable(err)
	}
	var held semel.Held
	err = s.change(ctx, c.Scope, c.Key, finishing(c, p, &held))
	return held, err
}

// finishing is the transition of Finish.
func finishing(c semel.Claim, p semel.FinishParams, held *semel.Held) transition {
	return func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		*held, changed = r.Finish(c, p)
		return changed, p.AuditEntry(r, changed)
	}
}

// Get reads the record as it is.
func (s *Store) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	r, err := s.read(ctx, scope, key)
	if err != nil {
		return semel.Record{}, unavailable(err)
	}
	return r.record, nil
}

// read reads the row of a key, which it does not lock.
func (s *Store) read(ctx context.Context, scope, key string) (r row, err error) {
	err = s.one(ctx, func(from pgx.Row) (err error) {
		r, err = scan(from)
		return err
	}, s.sql.read, []byte(scope), []byte(key))
	return r, err
}
