package memstore

import (
	"time"

	"github.com/semel-dev/semel"
)

// makeRoom pushes records out until one more fits.
func (s *Store) makeRoom(now time.Time) error {
	for len(s.records) >= s.cfg.MaxRecords {
		e := s.firstExpired(now)
		if e == nil {
			e = s.released.head
		}
		if e == nil {
			e = s.done.head
		}
		if e == nil {
			return semel.NewError(semel.CodeStoreUnavailable, nil,
				"memstore: full: all %d records (Config.MaxRecords) are running, unknown or tombstones, and none of those may be forgotten", s.cfg.MaxRecords)
		}
		s.remove(e, now)
	}
	return nil
}

// shedReplies pushes out the oldest done records but keep, which was the last
// to be done, until the replies fit.
func (s *Store) shedReplies(keep *entry, now time.Time) {
	for s.replyBytes > s.cfg.MaxReplyBytes {
		e := s.done.head
		if e == nil || e == keep {
			return
		}
		s.remove(e, now)
	}
}

func (s *Store) firstExpired(now time.Time) *entry {
	if len(s.expiring) == 0 || s.expiring[0].record.Expires.After(now) {
		return nil
	}
	return s.expiring[0]
}

// remove forgets a done or released record, as if its retention ended now. A
// raised generation leaves its tombstone behind (M8).
func (s *Store) remove(e *entry, now time.Time) {
	r := e.record
	at := id{r.Scope, r.Key}
	r.Now, r.Expires = now, now
	_, tombstone := r.Sweep()
	if tombstone {
		s.write(e, &r)
		return
	}
	s.unlink(e)
	s.replyBytes -= e.replySize()
	delete(s.records, at)
}

// field is one value of a saved header. A list of them is one allocation where
// a header is many.
type field struct{ name, value string }

// fieldsOf lists h, each name's values in order.
func fieldsOf(h semel.Header) []field {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	if n == 0 {
		return nil
	}
	fields := make([]field, 0, n)
	for name, values := range h {
		for _, value := range values {
			fields = append(fields, field{name, value})
		}
	}
	return fields
}

// headerOf is the header that fields lists.
func headerOf(fields []field) semel.Header {
	if len(fields) == 0 {
		return nil
	}
	h := make(semel.Header, len(fields))
	for _, f := range fields {
		h[f.name] = append(h[f.name], f.value)
	}
	return h
}

// replySize is how many bytes the entry's reply takes.
func (e *entry) replySize() int64 {
	n := len(e.record.Reply.Body)
	for _, f := range e.header {
		n += len(f.name) + len(f.value)
	}
	return int64(n)
}

// entry is a record in its place. Only done and released records have a queue.
type entry struct {
	record     semel.Record // without its reply's header
	header     []field
	queue      *fifo
	prev, next *entry
	heapIndex  int
}

// fifo is a list of entries, oldest first.
type fifo struct{ head, tail *entry }

func (q *fifo) push(e *entry) {
	e.prev, e.next = q.tail, nil
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
}

func (q *fifo) remove(e *entry) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// expiryHeap is a heap.Interface with the first to expire at the top. The
// queues cannot tell: retention differs by route.
type expiryHeap []*entry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].record.Expires.Before(h[j].record.Expires) }

func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push appends x, an entry.
func (h *expiryHeap) Push(x any) {
	e, _ := x.(*entry)
	e.heapIndex = len(*h)
	*h = append(*h, e)
}

// Pop removes the last entry.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
