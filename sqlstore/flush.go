package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
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
	logged, flushed, err := s.logged(ctx)
	if err != nil {
		return unavailable(err)
	}
	for until, pause := logged, firstFlushPause; flushed < until; pause = min(2*pause, lastFlushPause) {
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return unavailable(fmt.Errorf("the end of the record is not on disk yet: %w", context.Cause(ctx)))
		}
		if _, flushed, err = s.logged(ctx); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// logged returns how far the server has logged, and how far that is on disk.
func (s *Store) logged(ctx context.Context) (logged, flushed int64, err error) {
	err = s.again(ctx, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, s.dialect.logged).Scan(&logged, &flushed)
	})
	return logged, flushed, err
}
