package semelclient

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// MemoryStore keeps intents in memory: for tests, and for programs that accept
// that a crash forgets what was sent. The zero value is ready.
type MemoryStore struct {
	mu      sync.Mutex
	entries map[string]*memoryEntry
	holds   int64
}

var _ IntentStore = (*MemoryStore)(nil)

type memoryEntry struct {
	Entry
	until time.Time // of the hold, on the monotonic clock
}

func (e *memoryEntry) held() bool { return e.Hold.Token != "" && time.Now().Before(e.until) }

// hold gives the entry to a new holder. The lock is held.
func (m *MemoryStore) hold(e *memoryEntry, d time.Duration) {
	m.holds++
	e.Hold = Hold{Key: e.Intent.Key, Token: strconv.FormatInt(m.holds, 10)}
	e.until = time.Now().Add(d)
}

// Add implements IntentStore.
func (m *MemoryStore) Add(_ context.Context, in Intent, d time.Duration) (Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[in.Key] != nil {
		return Hold{}, ErrIntentKnown
	}
	if m.entries == nil {
		m.entries = make(map[string]*memoryEntry)
	}
	e := &memoryEntry{Entry: Entry{Intent: in.clone()}}
	m.hold(e, d)
	m.entries[in.Key] = e
	return e.Hold, nil
}

// Hold implements IntentStore.
func (m *MemoryStore) Hold(_ context.Context, key string, d time.Duration) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	switch {
	case e == nil:
		return Entry{}, ErrIntentMissing
	case e.Settlement == nil && e.held():
		return Entry{}, ErrIntentHeld
	case e.Settlement == nil:
		m.hold(e, d)
	}
	entry := e.Entry
	entry.Intent, entry.Settlement = entry.Intent.clone(), entry.Settlement.clone()
	return entry, nil
}

// Settle implements IntentStore.
func (m *MemoryStore) Settle(_ context.Context, h Hold, s Settlement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[h.Key]
	if e == nil || e.Hold != h {
		return ErrIntentHeld
	}
	e.Hold, e.Settlement = Hold{}, s.clone()
	return nil
}

// Release implements IntentStore.
func (m *MemoryStore) Release(_ context.Context, h Hold) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[h.Key]; e != nil && e.Hold == h {
		e.Hold = Hold{}
	}
	return nil
}

// Keys implements IntentStore.
func (m *MemoryStore) Keys(context.Context) iter.Seq2[string, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Collect(maps.Keys(m.entries))
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// Forget implements IntentStore.
func (m *MemoryStore) Forget(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
	return nil
}
