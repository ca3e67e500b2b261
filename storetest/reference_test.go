package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/storetest"
)

var (
	_ semel.Store   = (*reference)(nil)
	_ semel.Auditor = (*reference)(nil)
	_ semel.Joiner  = (*reference)(nil)
)

// reference is the plainest store that keeps the contract: tables in one
// place, a lock around them, and the transitions of semel.Record in between.
// The broken stores are made from it.
type reference struct {
	medium medium
	now    func() time.Time
	open   sync.Map // keys whose atomic claim is not committed yet
}

// medium holds the tables, and lends them to one caller at a time.
type medium interface {
	// borrow calls f with the tables, and keeps what f did to them if f says
	// that it did something.
	borrow(f func(*tables) (changed bool)) error
}

type tables struct {
	Records map[at]semel.Record
	Audits  []semel.AuditEntry
	Rows    int // of the business
	Swept   time.Time
	Writes  int64
}

type at struct{ Scope, Key string }

// memory is a medium for one process. Its lock is a channel, which a bubble of
// synctest counts as waiting, and which a test can take to hold up writes.
type memory struct {
	lock   chan struct{}
	tables tables
}

func newReference() *reference {
	return &reference{
		medium: &memory{lock: make(chan struct{}, 1), tables: tables{Records: map[at]semel.Record{}}},
		now:    time.Now,
	}
}

func (m *memory) borrow(f func(*tables) bool) error {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	if f(&m.tables) {
		m.tables.Writes++
	}
	return nil
}

// update lends f the record of (scope, key), with Now set, and saves what f
// made of it if f says that it changed it.
func (s *reference) update(scope, key string, f func(t *tables, r *semel.Record) (changed bool)) error {
	return s.medium.borrow(func(t *tables) bool {
		r := t.Records[at{scope, key}]
		r.Now = s.now()
		changed := f(t, &r)
		if changed {
			t.Records[at{scope, key}] = r
		}
		return changed
	})
}

func (s *reference) Begin(_ context.Context, p semel.BeginParams) (res semel.BeginResult, err error) {
	err = s.update(p.Scope, p.Key, func(t *tables, r *semel.Record) (changed bool) {
		res, changed = begin(t, r, p)
		return changed
	})
	return res, err
}

func begin(t *tables, r *semel.Record, p semel.BeginParams) (semel.BeginResult, bool) {
	res, changed := r.Begin(p)
	t.audit(p.AuditEntry(&res))
	return res, changed
}

func (t *tables) audit(e *semel.AuditEntry) {
	if e != nil {
		t.Audits = append(t.Audits, *e)
	}
}

func (s *reference) Extend(_ context.Context, c semel.Claim, p semel.ExtendParams) (held semel.Held, err error) {
	err = s.update(c.Scope, c.Key, func(_ *tables, r *semel.Record) (changed bool) {
		held, changed = r.Extend(c, p)
		return changed
	})
	return held, err
}

func (s *reference) Finish(_ context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
	failed := s.update(c.Scope, c.Key, func(t *tables, r *semel.Record) (changed bool) {
		held, changed, err = finish(t, r, c, p)
		return changed
	})
	return held, errors.Join(err, failed)
}

// finish saves a copy of the reply, the header as text.
func finish(t *tables, r *semel.Record, c semel.Claim, p semel.FinishParams) (semel.Held, bool, error) {
	held, changed := r.Finish(c, p)
	if !changed {
		return held, false, nil
	}
	header, err := r.Reply.Header.MarshalText()
	if err == nil {
		err = r.Reply.Header.UnmarshalText(header)
	}
	if err != nil {
		return semel.Held{}, false, err
	}
	r.Reply.Body = slices.Clone(r.Reply.Body)
	t.audit(p.AuditEntry(r, changed))
	return held, true, nil
}

func (s *reference) Get(_ context.Context, scope, key string) (rec semel.Record, err error) {
	err = s.update(scope, key, func(_ *tables, r *semel.Record) bool {
		rec = *r
		return false
	})
	return rec, err
}

func (s *reference) Sweep(_ context.Context, limit int) (n int, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		for place, r := range t.Records {
			if n == limit {
				break
			}
			r.Now = s.now()
			remove, tombstone := r.Sweep()
			if !remove {
				continue
			}
			n++
			delete(t.Records, place)
			if tombstone {
				t.Records[place] = r
			}
		}
		return n > 0
	})
	return n, err
}

func (s *reference) Audits(_ context.Context, scope, key string) (of []semel.AuditEntry, err error) {
	err = s.medium.borrow(func(t *tables) bool {
		for _, e := range t.Audits {
			if e.Scope == scope && e.Key == key {
				of = append(of, e)
			}
		}
		return false
	})
	return of, err
}

var _ semel.Joint = (*joint)(nil)

// joint is a business transaction that counts the rows it would add.
type joint struct {
	store *reference
	claim semel.Claim
	rows  int
}

type jointKey struct{}

func (s *reference) Join(c semel.Claim) semel.Joint { return &joint{store: s, claim: c} }

func (j *joint) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, jointKey{}, j)
}

var errNotDone = errors.New("only an end that is done is committed")

func (j *joint) Opened() bool { return j.rows > 0 }

func (j *joint) Rollback() error {
	j.rows = 0
	return nil
}

func (j *joint) Commit(_ context.Context, p semel.FinishParams) (held semel.Held, err error) {
	if p.To != semel.StateDone {
		return semel.Held{}, errNotDone
	}
	failed := j.store.update(j.claim.Scope, j.claim.Key, func(t *tables, r *semel.Record) (changed bool) {
		held, changed, err = finish(t, r, j.claim, p)
		if held.Status == semel.HeldYes {
			t.Rows += j.rows
		}
		return changed
	})
	j.rows = 0
	return held, errors.Join(err, failed)
}

// writeRow is the business of the tests.
func writeRow(ctx context.Context) error {
	j, _ := ctx.Value(jointKey{}).(*joint)
	j.rows++
	return nil
}

// referred finds the reference inside a store made from it.
func referred(t *testing.T, s semel.Store) *reference {
	t.Helper()
	r, ok := semel.As[*reference](s)
	if !ok {
		t.Fatalf("got a %T, want a store that unwraps to the reference", s)
	}
	return r
}

func (s *reference) count(t *testing.T, of func(*tables) int64) (n int64) {
	t.Helper()
	if err := s.medium.borrow(func(t *tables) bool { n = of(t); return false }); err != nil {
		t.Fatal(err)
	}
	return n
}

// harness tests what wrap makes of a reference in a bubble.
func harness(wrap func(*reference) semel.Store) storetest.Harness {
	return storetest.Harness{
		New:     func(*testing.T) semel.Store { return wrap(newReference()) },
		Advance: func(_ *testing.T, _ semel.Store, d time.Duration) { time.Sleep(d) },
		Around:  synctest.Test,
		Writes: func(t *testing.T, s semel.Store) int64 {
			return referred(t, s).count(t, func(t *tables) int64 { return t.Writes })
		},
		Stall: func(t *testing.T, s semel.Store) func() {
			m, _ := referred(t, s).medium.(*memory)
			m.lock <- struct{}{}
			return func() { <-m.lock }
		},
		Business: &storetest.Business{
			Write: writeRow,
			Rows: func(t *testing.T, s semel.Store) int {
				return int(referred(t, s).count(t, func(t *tables) int64 { return int64(t.Rows) }))
			},
		},
		Lacks: storetest.Processes,
	}
}
