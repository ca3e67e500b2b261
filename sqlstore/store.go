package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/testhook"
	"github.com/semel-dev/semel/migrate"
)

var (
	_ semel.Store   = (*Store)(nil)
	_ semel.Joiner  = (*Store)(nil)
	_ semel.Classed = (*Store)(nil)
	_ semel.Auditor = (*Store)(nil)
	_ semel.Limited = (*Store)(nil)
	_ semel.Bounded = (*Store)(nil)

	_ semel.Binder[*sql.Tx] = (*Store)(nil)
)

// Config holds the optional settings of a Store.
type Config struct {
	// Isolation is that of the business transactions of joined mode; zero is
	// sql.LevelReadCommitted. Above it PostgreSQL refuses the commit of a
	// handler that has renewed its lease since it first read something, that
	// is after a third of the lease, and MariaDB does so from 11.6 on. SQLite
	// has only sql.LevelSerializable, whatever is said here.
	Isolation sql.IsolationLevel
	// Class is what the database keeps of what it has acknowledged. Default
	// semel.Durable; semel.DurableUnlessFailover where a replica that has not
	// confirmed a write may take over.
	Class semel.StoreClass
	// Hooks are for the tests of this module: they move the store's clock.
	// Their type is internal, so that nobody else can set them.
	Hooks testhook.Hooks
}

// Store is a semel.Store in an SQL database. It is safe for concurrent use and
// owns no goroutine.
//
// Errors of all its methods match semel.ErrStoreUnavailable. The context bounds
// the wait for the writer as well as the statements; when a method has
// returned, nothing of it is still to execute (R15).
type Store struct {
	handles  *Handles
	dialect  *dialect
	fill     *filler
	sql      statements
	business sql.TxOptions
	class    semel.StoreClass
	looks    *looks
	maxReply int64
	hooks    testhook.Hooks
}

// New returns a store over a database that was opened with one of the Open
// functions and migrated. It starts nothing, and does not close h. Errors match
// semel.ErrConfig if the schema is not the one that this version needs, else
// semel.ErrStoreUnavailable.
func New(ctx context.Context, h *Handles, cfg Config) (*Store, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if err := checkSchema(ctx, h); err != nil {
		return nil, err
	}
	class, err := h.class(ctx, cfg.Class)
	if err != nil {
		return nil, err
	}
	var schema string
	if err := h.ownRead.QueryRowContext(ctx, h.dialect.schema).Scan(&schema); err != nil {
		return nil, unavailable(fmt.Errorf("ask which schema the tables are in: %w", err))
	}
	s := &Store{handles: h, dialect: h.dialect, fill: h.dialect.filler(schema, cfg.Hooks.ClockShift, class), class: class, looks: newLooks(), hooks: cfg.Hooks}
	if err := h.ownRead.QueryRowContext(ctx, h.dialect.maxReply).Scan(&s.maxReply); err != nil {
		return nil, unavailable(fmt.Errorf("ask how large a reply may be: %w", err))
	}
	s.sql = s.fill.statements()
	s.business.Isolation = cfg.Isolation
	if cfg.Isolation == sql.LevelDefault {
		s.business.Isolation = sql.LevelReadCommitted
	}
	return s, nil
}

// Migrate brings the database to the schema that New wants. Several processes
// may call it at once, and beside others at work. Errors match semel.ErrConfig,
// and migrate.ErrNewer, if a later version of Semel was here, else
// semel.ErrStoreUnavailable.
func Migrate(ctx context.Context, h *Handles) error {
	if err := h.check(); err != nil {
		return err
	}
	_, err := migrate.Up(ctx, h.Write, h.dialect.migrations)
	switch {
	case errors.Is(err, migrate.ErrNewer):
		return semel.NewError(semel.CodeConfig, err, "sqlstore: the database is not migrated")
	case err != nil:
		return unavailable(err)
	}
	return nil
}

func checkSchema(ctx context.Context, h *Handles) error {
	want, err := h.dialect.migrations.Latest()
	if err != nil {
		return err
	}
	got, err := migrate.Version(ctx, h.ownRead, h.dialect.migrations)
	switch {
	case err != nil:
		return unavailable(err)
	case got == 0:
		return configError("the database has no tables of Semel yet: migrate it first, with sqlstore.Migrate or \"semel migrate up --store …\"")
	case got < want:
		return configError("the database has schema version %d and this program needs %d: migrate it first, with sqlstore.Migrate or \"semel migrate up --store …\"", got, want)
	case got > want:
		return configError("the database has schema version %d and this program knows %d: use a newer program", got, want)
	}
	return nil
}

func configError(format string, args ...any) error {
	return semel.NewError(semel.CodeConfig, nil, "sqlstore: "+format, args...)
}

// unavailable is the one place where a database's error becomes Semel's.
func unavailable(err error) error {
	if errors.Is(err, semel.ErrStoreUnavailable) {
		return err
	}
	return semel.NewError(semel.CodeStoreUnavailable, err, "%s", semel.ErrStoreUnavailable.Text)
}

// StatementLimit returns after how long the database gives a statement up by
// itself; of SQLite, how long it waits for another writer.
func (s *Store) StatementLimit() time.Duration { return s.dialect.limit }

// MaxReply returns the most bytes of a reply that are saved: 16 MiB, and in MariaDB
// a little less than half of max_allowed_packet as New found it, if that is less.
func (s *Store) MaxReply() int64 { return s.maxReply }

// Class returns what Config said, or semel.BestEffort where New found that the
// server does not wait for its disk (PostgreSQL: fsync or synchronous_commit
// off; MariaDB: innodb_flush_log_at_trx_commit other than 1, or a binary log
// whose sync_binlog is). What a failover to a replica loses is not seen from
// here.
func (s *Store) Class() semel.StoreClass { return s.class }

// offset is added to the clock that a statement reads: zero but in tests.
func (s *Store) offset() int64 { return s.hooks.Offset().Microseconds() }

// Begin claims p's key or says why it cannot be claimed. It reads first, so
// that a replay writes nothing and waits for no writer; only a claim opens a
// transaction, which reads again. A server claims a new key in one statement;
// where there is a record PostgreSQL reads it in the same one, and MariaDB in
// another.
func (s *Store) Begin(ctx context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	seen, res, err := s.beginAlone(ctx, p)
	if err != nil || res.Outcome != 0 {
		return res, err
	}
	res, changed := seen.record.Begin(p)
	if !changed {
		if err := s.awaitFlush(ctx, &seen.record); err != nil {
			return semel.BeginResult{}, err
		}
		return res, nil
	}
	err = s.change(ctx, p.Scope, p.Key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		res, changed = r.Begin(p)
		return changed, p.AuditEntry(&res)
	})
	if err != nil {
		return semel.BeginResult{}, err
	}
	return res, nil
}

// Extend renews the lease of c.
func (s *Store) Extend(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	if held, err := s.extendAlone(ctx, c, p); err != nil || held.Status != 0 {
		return held, err
	}
	var held semel.Held
	err := s.change(ctx, c.Scope, c.Key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		held, changed = r.Extend(c, p)
		return changed, nil
	})
	return held, err
}

// Finish ends c in a commit of its own.
func (s *Store) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	if held, err := s.finishAlone(ctx, c, p); err != nil || held.Status != 0 {
		return held, err
	}
	var held semel.Held
	err := s.change(ctx, c.Scope, c.Key, finishing(c, p, &held))
	return held, err
}

// finishing is the transition of Finish, which joined mode has as well.
func finishing(c semel.Claim, p semel.FinishParams, held *semel.Held) transition {
	return func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		*held, changed = r.Finish(c, p)
		return changed, p.AuditEntry(r, changed)
	}
}

// Get reads the record as it is.
func (s *Store) Get(ctx context.Context, scope, key string) (semel.Record, error) {
	r, err := s.read(ctx, s.handles.ownRead, s.sql.read, scope, key)
	if err != nil {
		return semel.Record{}, unavailable(err)
	}
	if err := s.awaitFlush(ctx, &r.record); err != nil {
		return semel.Record{}, err
	}
	return r.record, nil
}

// transition changes a record that was just read, by the rules of the root
// package, and reports whether it has to be written and what to log.
type transition func(*semel.Record) (changed bool, audit *semel.AuditEntry)

// change runs one transition in a transaction of its own. The record and the
// clock are read once the write lock is held: a time taken before queueing
// would be old by the length of the queue.
func (s *Store) change(ctx context.Context, scope, key string, apply transition) error {
	var (
		found   *semel.Record
		changed bool
	)
	err := s.write(ctx, func(tx *sql.Tx) (_ bool, err error) {
		changed, err = s.changeTx(ctx, tx, scope, key, func(r *semel.Record) (bool, *semel.AuditEntry) {
			found = r
			return apply(r)
		})
		return changed, err
	})
	if err != nil || changed {
		return err
	}
	return s.awaitFlush(ctx, found)
}

// changeTx runs one transition inside tx and reports whether it wrote.
func (s *Store) changeTx(ctx context.Context, tx *sql.Tx, scope, key string, apply transition) (bool, error) {
	r, err := s.read(ctx, tx, s.sql.readToWrite, scope, key)
	if err != nil {
		return false, err
	}
	changed, audit := apply(&r.record)
	if !changed {
		return false, nil
	}
	if err := s.saveTx(ctx, tx, &r); err != nil {
		return false, err
	}
	if audit != nil {
		return true, s.auditTx(ctx, tx, audit)
	}
	return true, nil
}

// write runs do in a write transaction, and commits it if it changed anything.
func (s *Store) write(ctx context.Context, do func(*sql.Tx) (changed bool, err error)) error {
	return s.again(ctx, func(conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, &s.dialect.own)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
		if s.dialect.limits != "" {
			if _, err := tx.ExecContext(ctx, s.dialect.limits); err != nil {
				return fmt.Errorf("set the limits of a transaction: %w", err)
			}
		}
		changed, err := do(tx)
		if err == nil && changed {
			err = tx.Commit()
		}
		return err
	})
}

// mostTries bounds how often a write is sent that had no effect. A key that
// many claim at once costs a try for each rival that came in between, and few
// come before the first commit; a lost server costs one for each connection.
const mostTries = 10

// again runs do on a connection of the store's own until it is done, or fails
// with an error after which it may have had an effect or would fail again. Of
// driver.ErrBadConn nothing was sent, and each of our calls may be sent twice:
// the connection was lost before, and there may be others like it.
func (s *Store) again(ctx context.Context, do func(conn *sql.Conn) error) error {
	for try := 1; ; try++ {
		err := s.once(ctx, do)
		if err == nil {
			return nil
		}
		if try == mostTries || ctx.Err() != nil ||
			!errors.Is(err, errTaken) && !errors.Is(err, driver.ErrBadConn) && !s.dialect.errors.again(err) {
			return unavailable(err)
		}
	}
}

func (s *Store) once(ctx context.Context, do func(conn *sql.Conn) error) error {
	conn, giveBack, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	return do(conn)
}

// acquire takes a connection for one call. It leaves a server the time that it
// may take for a statement: one that was sent later could still be at work when
// the caller has given up (R15).
func (s *Store) acquire(ctx context.Context) (conn *sql.Conn, giveBack func(), err error) {
	if deadline, ok := ctx.Deadline(); ok && s.handles.own != s.handles.Write {
		if wait := time.Until(deadline) - s.dialect.limit; wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
	}
	conn, giveBack, err = s.handles.ownTurns.connOf(ctx, s.handles.own)
	if err != nil {
		return nil, nil, fmt.Errorf("no connection: %w", err)
	}
	return conn, giveBack, nil
}
