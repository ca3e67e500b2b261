// Package memstore keeps records in the memory of one process. It protects
// that process and no other: two processes with a memstore each run a key
// twice, and everything is lost when the process ends. It is for tests, for
// development, and for work whose repetition is a nuisance and no loss. Its
// class is semel.BestEffort.
//
// The store is bounded. When it is full a new key pushes out what is expired,
// then the oldest released record (known not applied, so that running it again
// harms nothing), then the oldest done one, which can then run again before
// its retention has ended. Running and unknown records are never pushed out:
// when there is nothing else, Begin fails with semel.ErrStoreUnavailable and
// nothing runs. Of the log of settlements the latest MaxAudits lines are kept.
//
// Replies are copied when they are saved. The Body of a Reply that the store
// returns is shared by all who ask: read it, do not change it.
package memstore

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// The defaults of Config.
const (
	DefaultMaxRecords    = 100_000
	DefaultMaxReplyBytes = 256 << 20
)

// MaxAudits is how many lines of the log of settlements are kept for certain.
// They outlive their records; above twice as many the oldest are forgotten.
const MaxAudits = 10_000

// Config holds the bounds of a Store. Zero means the default.
type Config struct {
	// MaxRecords is the most records kept, of all states. One takes about
	// 700 bytes, beside its scope, key and reply. Default DefaultMaxRecords.
	MaxRecords int
	// MaxReplyBytes is the most bytes of saved headers and bodies; above it
	// the oldest done records are pushed out. A single reply may exceed it.
	// Default DefaultMaxReplyBytes.
	MaxReplyBytes int64
}

var (
	_ semel.Store   = (*Store)(nil)
	_ semel.Auditor = (*Store)(nil)
	_ semel.Classed = (*Store)(nil)
)

// Store is a semel.Store in memory, safe for concurrent use. It has one lock,
// which a call holds for about a microsecond, and longer by about as much for
// each record that it pushes out or sweeps, and to copy a reply. Its clock is
// the process's, whose steps it does not see.
type Store struct {
	cfg Config

	mu         sync.Mutex
	records    map[id]*entry
	released   fifo
	done       fifo
	expiring   expiryHeap // all released and done records
	replyBytes int64
	audits     []semel.AuditEntry
	swept      time.Time // when a sweeper last took its turn
}

// id is what a record is found by. Strings compare as bytes (R11).
type id struct{ scope, key string }

// New returns an empty store. It starts nothing; whoever wants the memory of
// expired records back before the store is full runs a semel.Sweeper. Errors
// match semel.ErrConfig.
func New(cfg Config) (*Store, error) {
	if cfg.MaxRecords < 0 {
		return nil, configError("MaxRecords", int64(cfg.MaxRecords))
	}
	if cfg.MaxReplyBytes < 0 {
		return nil, configError("MaxReplyBytes", cfg.MaxReplyBytes)
	}
	if cfg.MaxRecords == 0 {
		cfg.MaxRecords = DefaultMaxRecords
	}
	if cfg.MaxReplyBytes == 0 {
		cfg.MaxReplyBytes = DefaultMaxReplyBytes
	}
	return &Store{cfg: cfg, records: make(map[id]*entry)}, nil
}

func configError(field string, got int64) error {
	return semel.NewError(semel.CodeConfig, nil, "memstore: %s is %d; it must be positive, or zero for the default", field, got)
}

// Class returns semel.BestEffort: everything is lost with the process.
func (s *Store) Class() semel.StoreClass { return semel.BestEffort }

// Begin claims p's key or says why it cannot be claimed. Errors match
// semel.ErrStoreUnavailable: the store is full of records that it may not
// forget.
func (s *Store) Begin(_ context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := id{p.Scope, p.Key}
	e, r := s.read(at)
	res, changed := r.Begin(p)
	if changed {
		if e == nil {
			if err := s.makeRoom(r.Now); err != nil {
				return semel.BeginResult{}, err
			}
			e = &entry{}
			s.records[at] = e
		}
		s.write(e, &r, nil)
	}
	if res.Outcome == semel.BeginReplay {
		if err := res.Record.Reply.Header.UnmarshalText(e.header); err != nil {
			return semel.BeginResult{}, err
		}
	}
	s.log(p.AuditEntry(&res))
	return res, nil
}

// Extend renews the lease of c. It returns no error.
func (s *Store) Extend(_ context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, r := s.read(id{c.Scope, c.Key})
	held, changed := r.Extend(c, p)
	if changed {
		s.write(e, &r, nil)
	}
	return held, nil
}

// Finish ends c. It copies the reply. A header that cannot be saved (see
// semel.Header) is an error, and changes nothing.
func (s *Store) Finish(_ context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, r := s.read(id{c.Scope, c.Key})
	held, changed := r.Finish(c, p)
	if !changed {
		return held, nil
	}
	header, err := r.Reply.Header.MarshalText()
	if err != nil {
		return semel.Held{}, err
	}
	r.Reply.Body = slices.Clone(r.Reply.Body)
	s.write(e, &r, header)
	s.log(p.AuditEntry(&r, changed))
	s.shedReplies(e, r.Now)
	return held, nil
}

// Get returns the record. The body of its reply is shared. It returns no error.
func (s *Store) Get(_ context.Context, scope, key string) (semel.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, r := s.read(id{scope, key})
	if e != nil {
		if err := r.Reply.Header.UnmarshalText(e.header); err != nil {
			return semel.Record{}, err
		}
	}
	return r, nil
}

// Sweep removes at most limit expired records. It returns no error.
func (s *Store) Sweep(_ context.Context, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for n := range limit {
		e := s.firstExpired(now)
		if e == nil {
			return n, nil
		}
		s.remove(e, now)
	}
	return max(limit, 0), nil
}

// Audits returns the settlements of a key, oldest first, as far as they are
// among the latest MaxAudits of all keys. It returns no error.
func (s *Store) Audits(_ context.Context, scope, key string) ([]semel.AuditEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []semel.AuditEntry
	for _, e := range s.audits {
		if e.Scope == scope && e.Key == key {
			of = append(of, e)
		}
	}
	return of, nil
}

// log appends e, unless it is nil. A full log forgets its oldest half at once,
// so that appending does not move the whole of it each time.
func (s *Store) log(e *semel.AuditEntry) {
	if e == nil {
		return
	}
	if len(s.audits) == 2*MaxAudits {
		s.audits = slices.Delete(s.audits, 0, MaxAudits)
	}
	s.audits = append(s.audits, *e)
}

// read returns the entry, nil if there is none, and a copy of its record with
// Now set. The time is taken under the lock: one taken before waiting for it
// would be in the past of what is read.
func (s *Store) read(at id) (*entry, semel.Record) {
	var r semel.Record
	e := s.records[at]
	if e != nil {
		r = e.record
	}
	r.Now = time.Now()
	return e, r
}

// write replaces the entry's record and puts it where its new state belongs.
// Only the Finish that keeps a reply has a header.
func (s *Store) write(e *entry, r *semel.Record, header []byte) {
	s.unlink(e)
	s.replyBytes -= e.replySize()
	e.record, e.header = *r, header
	e.record.Reply.Header = nil
	s.replyBytes += e.replySize()
	s.link(e)
}

func (s *Store) link(e *entry) {
	switch e.record.State {
	case semel.StateDone:
		e.queue = &s.done
	case semel.StateReleased:
		e.queue = &s.released
	default:
		return
	}
	e.queue.push(e)
	heap.Push(&s.expiring, e)
}

func (s *Store) unlink(e *entry) {
	if e.queue == nil {
		return
	}
	e.queue.remove(e)
	e.queue = nil
	heap.Remove(&s.expiring, e.heapIndex)
}
