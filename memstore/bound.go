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
		s.write(e, &r, nil)
		return
	}
	s.unlink(e)
	s.replyBytes -= e.replySize()
	delete(s.records, at)
}
