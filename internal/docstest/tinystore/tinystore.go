// Package tinystore is the store that docs/writing-a-store.md builds up: the
// least that passes storetest. It keeps everything for ever; memstore is the
// one to use.
package tinystore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Store keeps records in a map. Its zero value is not ready: see New.
type Store struct {
	mu      sync.Mutex
	records map[id]semel.Record
}

type id struct{ scope, key string }

var _ semel.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{records: make(map[id]semel.Record)}
}

// read returns the record as it is, with the store's time in it. The caller
// holds the lock: a time taken before waiting for it would be too early.
func (s *Store) read(scope, key string) semel.Record {
	r := s.records[id{scope, key}]
	r.Now = time.Now()
	return r
}

// Begin meets semel.Store. It returns no error.
func (s *Store) Begin(_ context.Context, p semel.BeginParams) (semel.BeginResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.read(p.Scope, p.Key)
	res, changed := r.Begin(p)
	if changed {
		s.records[id{p.Scope, p.Key}] = r
	}
	return res, nil
}

// Extend meets semel.Store. It returns no error.
func (s *Store) Extend(_ context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.read(c.Scope, c.Key)
	held, changed := r.Extend(c, p)
	if changed {
		s.records[id{c.Scope, c.Key}] = r
	}
	return held, nil
}

// Finish meets semel.Store. Its error is of a reply that cannot be saved, and
// changes nothing.
func (s *Store) Finish(_ context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.read(c.Scope, c.Key)
	held, changed := r.Finish(c, p)
	if !changed {
		return held, nil
	}
	reply, err := saved(r.Reply)
	if err != nil {
		return semel.Held{}, err
	}
	r.Reply = reply
	s.records[id{c.Scope, c.Key}] = r
	return held, nil
}

// saved is a reply as it comes back, whose memory its giver does not share.
func saved(r semel.Reply) (semel.Reply, error) {
	text, err := r.Header.MarshalText()
	if err != nil {
		return semel.Reply{}, err
	}
	r.Header = nil
	err = r.Header.UnmarshalText(text)
	r.Body = slices.Clone(r.Body)
	return r, err
}

// Get meets semel.Store. It returns no error.
func (s *Store) Get(_ context.Context, scope, key string) (semel.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(scope, key), nil
}

// Sweep meets semel.Store. It returns no error.
func (s *Store) Sweep(_ context.Context, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := 0
	for at, r := range s.records {
		if removed == limit {
			break
		}
		r.Now = time.Now()
		switch remove, tombstone := r.Sweep(); {
		case !remove:
			continue
		case tombstone:
			s.records[at] = r
		default:
			delete(s.records, at)
		}
		removed++
	}
	return removed, nil
}
