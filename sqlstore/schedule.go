package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-dev/semel"
)

var _ semel.SweepScheduler = (*Store)(nil)

// updateTurn takes a turn that nobody has taken for long enough, or one that is
// in the future.
const updateTurn = `UPDATE semel_sweep SET taken = {now} + ? WHERE id = 1 AND (taken <= {now} + ? OR taken > {now} + ?)`

// selectLag finds the first to expire of the records of either kind, each by
// the index from which they are swept.
const selectLag = `SELECT {now} + ? - min(expires) FROM (
	SELECT expires FROM (SELECT expires FROM semel_records WHERE expires <= {asked} + ? AND generation = 0 ORDER BY expires LIMIT 1) plain
	UNION ALL
	SELECT expires FROM (SELECT expires FROM semel_records WHERE expires <= {asked} + ? AND generation > 0 ORDER BY expires LIMIT 1) raised) expired`

// clockTolerance is how far in the future a turn may be without the clock
// having been set back.
const clockTolerance = time.Second

// SweepTurn takes a turn to sweep, if nobody has within d.
func (s *Store) SweepTurn(ctx context.Context, d time.Duration) (mine bool, err error) {
	offset := s.offset()
	err = s.alone(ctx, func(q execer) (err error) {
		mine, err = wroteOne(q.ExecContext(ctx, s.fill.text(updateTurn), offset, offset-d.Microseconds(), offset+clockTolerance.Microseconds()))
		return err
	})
	if err != nil {
		return false, unavailable(err)
	}
	return mine, nil
}

// SweepLag returns for how long the first record to expire has been expired.
func (s *Store) SweepLag(ctx context.Context) (time.Duration, error) {
	offset := s.offset()
	var micros sql.NullInt64
	if err := s.handles.ownRead.QueryRowContext(ctx, s.fill.text(selectLag), offset, offset, offset).Scan(&micros); err != nil {
		return 0, unavailable(err)
	}
	return max(time.Duration(micros.Int64)*time.Microsecond, 0), nil
}
