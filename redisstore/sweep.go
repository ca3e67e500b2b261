package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
)

// Sweep removes at most limit expired records, each in a step of its own that
// finds it as it was seen or leaves it alone, and leaves a tombstone where the
// generation is above zero (M8). It asks every bucket.
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	removed := 0
	for removed < limit {
		due, more, err := s.due(ctx, limit-removed)
		if err != nil {
			return removed, unavailable(err)
		}
		n, err := s.removeAll(ctx, due)
		removed += n
		if err != nil {
			return removed, unavailable(err)
		}
		if !more || n == 0 {
			break
		}
	}
	return removed, nil
}

// expired is a member of an index that had expired at the time now.
type expired struct {
	member

	now int64
}

// due returns at most limit records that have expired, an equal share from each
// bucket, and whether there may be more.
func (s *Store) due(ctx context.Context, limit int) (all []expired, more bool, err error) {
	share := limit/buckets + 1
	var found [buckets]page
	err = together(buckets, func(bucket int) (err error) {
		found[bucket], err = s.page(ctx, bucket, partExpired, "", 0, share)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	for _, p := range found {
		more = more || len(p.members) == share
		for _, m := range p.members {
			all = append(all, expired{member: m, now: p.now})
		}
	}
	if len(all) > limit {
		return all[:limit], true, nil
	}
	return all, more, nil
}

// removeAll removes what is still as it was seen, and returns how many records
// that were.
func (s *Store) removeAll(ctx context.Context, due []expired) (int, error) {
	var removed atomic.Int64
	err := together(len(due), func(i int) error {
		gone, err := s.remove(ctx, due[i])
		if gone {
			removed.Add(1)
		}
		return err
	})
	return int(removed.Load()), err
}

func (s *Store) remove(ctx context.Context, e expired) (gone bool, err error) {
	g := &guess{by: []int{fieldExpires, fieldGeneration}}
	g.record = semel.Record{
		State:   semel.StateDone,
		Expires: time.UnixMicro(int64(e.score)).UTC(),
		Now:     time.UnixMicro(e.now).UTC(),
	}
	_, err = s.change(ctx, e.at, semel.Token{}, g, func(r *row) (verb, *semel.AuditEntry) {
		if r.read && r.mark == "" {
			gone = false // only its place in the index is left, if that is
			return remove, nil
		}
		var tombstone bool
		gone, tombstone = r.record.Sweep()
		if gone && !tombstone {
			return remove, nil
		}
		return writeIf(gone), nil
	})
	return gone && err == nil, err
}

//go:embed turn.lua
var turnText string

var turnScript = rueidis.NewLuaScript(turnText)

// turnBucket is the one whose server keeps the schedule of sweeps.
const turnBucket = 0

// SweepTurn takes a turn to sweep, if nobody has within d.
func (s *Store) SweepTurn(ctx context.Context, d time.Duration) (bool, error) {
	sent := time.Now()
	keys := s.withShift(turnBucket, s.tags[turnBucket]+":swept")
	words, err := s.exec(ctx, turnScript, keys, []string{micros(d)})
	if err != nil {
		return false, unavailable(err)
	}
	kind, _, err := s.heading(turnBucket, sent, words)
	if err != nil {
		return false, unavailable(err)
	}
	return kind == "mine", nil
}

// SweepLag returns for how long the first to expire has been expired.
func (s *Store) SweepLag(ctx context.Context) (time.Duration, error) {
	// One of each bucket: the share of a limit that is below their number.
	due, _, err := s.due(ctx, buckets-1)
	if err != nil {
		return 0, unavailable(err)
	}
	var lag time.Duration
	for _, e := range due {
		lag = max(lag, time.Duration(e.now-int64(e.score))*time.Microsecond)
	}
	return lag, nil
}

// atOnce is how many steps a sweep or a list has in flight; they share round
// trips.
const atOnce = 32

// together calls f(0) … f(n-1), some at the same time, and returns their errors.
func together(n int, f func(i int) error) error {
	var (
		next atomic.Int64
		all  sync.WaitGroup
	)
	errs := make([]error, n)
	for range min(n, atOnce) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
