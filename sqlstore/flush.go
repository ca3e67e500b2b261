package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Without a binary log MariaDB shows a commit to others before it is on disk
// (https://bugs.mysql.com/bug.php?id=74303): a reply that is read then, and
// shown, is lost in a crash, and the work runs again. So whoever finds a record
// done waits until all that was logged by then is on disk, which writes nothing.

const (
	// flushWithin is how long after it was written an end may still not be on
	// disk.
	flushWithin = time.Minute
	// The pauses between two looks grow from the first to the last.
	firstFlushPause, lastFlushPause = time.Millisecond, 16 * time.Millisecond
)

// awaitFlush returns when the end of r, which was read as committed, is on disk.
func (s *Store) awaitFlush(ctx context.Context, r *semel.Record) error {
	if s.dialect.logged == "" || r.State != semel.StateDone || r.Now.Sub(r.Finished) > flushWithin {
		return nil
	}
	at, err := s.looks.look(ctx, s.look)
	for until, pause := at.logged, firstFlushPause; err == nil && at.flushed < until; pause = min(2*pause, lastFlushPause) {
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			at, err = s.looks.look(ctx, s.look)
		case <-ctx.Done():
			err = fmt.Errorf("the end of the record is not on disk yet: %w", context.Cause(ctx))
		}
		again.Stop()
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// position is how far a server has logged, and how far that is on disk.
type position struct{ logged, flushed int64 }

// look asks the server, which takes some of its time.
func (s *Store) look(ctx context.Context) (at position, err error) {
	err = s.again(ctx, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, s.dialect.logged).Scan(&at.logged, &at.flushed)
	})
	return at, err
}

// looks has those who wait at one time share their looks: one is under way, and
// who comes meanwhile shares the next.
type looks struct {
	turn chan struct{} // holds whoever looks

	mu   sync.Mutex
	next *shared // nil if nobody waits for it
}

// shared is one look, of the one who came first and all others until it begins.
type shared struct {
	done chan struct{} // closed when it is over
	at   position
	err  error
}

func newLooks() *looks { return &looks{turn: make(chan struct{}, 1)} }

// look returns what a look has seen that began after the call. A failure is
// that of whoever looked: others look again.
func (l *looks) look(ctx context.Context, ask func(context.Context) (position, error)) (position, error) {
	for {
		l.mu.Lock()
		mine := l.next
		if mine == nil {
			mine = &shared{done: make(chan struct{})}
			l.next = mine
			l.mu.Unlock()
			l.lead(ctx, mine, ask)
			return mine.at, mine.err
		}
		l.mu.Unlock()
		select {
		case <-mine.done:
			if mine.err == nil {
				return mine.at, nil
			}
		case <-ctx.Done():
			return position{}, context.Cause(ctx)
		}
	}
}

// lead looks when it is its turn. Nobody joins once it does.
func (l *looks) lead(ctx context.Context, mine *shared, ask func(context.Context) (position, error)) {
	defer close(mine.done)
	begin := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.next = nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		begin()
		mine.at, mine.err = ask(ctx)
	case <-ctx.Done():
		begin()
		mine.err = context.Cause(ctx)
	}
}
