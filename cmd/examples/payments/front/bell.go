package front

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// ChangesEvery is the least time between two events of a stream.
const ChangesEvery = 250 * time.Millisecond

// bell tells any number of listeners that something has changed. The zero
// value is ready.
type bell struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next ring; nil while nobody listens
}

// listen returns a channel that is closed at the next ring.
func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// Changed tells the streams that something has changed that is not in the log.
func (l *Log) Changed() { l.bell.ring() }

// showChanges is GET /demo/changes: a stream that says "something has changed"
// and nothing else, so that what changed is rendered in one place only. It
// writes nothing while nothing changes, and ends when the server stops.
func (f *Front) showChanges(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	stream := http.NewResponseController(w)
	for {
		changed := f.cfg.Log.bell.listen()
		// The first event comes at once: the reader may have missed something
		// before it listened.
		if _, err := w.Write([]byte("event: changed\ndata:\n\n")); err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-f.stopped:
			return
		case <-r.Context().Done():
			return
		}
		if !f.rest(r.Context()) {
			return
		}
	}
}

// rest lets changes gather, and reports whether the stream goes on. All streams
// go on at the same moments, so that those who listen ask for the news together
// and it is made once for all of them.
func (f *Front) rest(ctx context.Context) bool {
	now := time.Now()
	beat := now.Truncate(ChangesEvery).Add(ChangesEvery)
	t := time.NewTimer(beat.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.stopped:
	case <-ctx.Done():
	}
	return false
}

// Stop ends the streams of changes, which would otherwise keep the server from
// stopping.
func (f *Front) Stop() { f.stop() }
