package memstore

import (
	"fmt"
	"slices"
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
			return &semel.Error{
				Code: semel.CodeStoreUnavailable,
				Text: fmt.Sprintf("memstore: full: all %d records (Config.MaxRecords) are running, unknown or tombstones, and none of those may be forgotten", s.cfg.MaxRecords),
			}
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
	s.replyBytes -= replySize(e.record.Reply)
	delete(s.records, at)
}

// clone copies a reply, so that its giver may use the memory again. All header
// values share one array: a reply has many fields with one value each.
func clone(r semel.Reply) semel.Reply {
	r.Body = slices.Clone(r.Body)
	if r.Header == nil {
		return r
	}
	n := 0
	for _, values := range r.Header {
		n += len(values)
	}
	all := make([]string, 0, n)
	header := make(semel.Header, len(r.Header))
	for name, values := range r.Header {
		from := len(all)
		all = append(all, values...)
		header[name] = slices.Clip(all[from:])
	}
	r.Header = header
	return r
}

func replySize(r semel.Reply) int64 {
	n := len(r.Body)
	for name, values := range r.Header {
		n += len(name)
		for _, value := range values {
			n += len(value)
		}
	}
	return int64(n)
}

// entry is a record in its place. Only done and released records have a queue.
type entry struct {
	record     semel.Record
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
