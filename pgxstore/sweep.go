package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lockRaised finds the expired records that leave a tombstone. A record that
// another sweeper has, or a new claim, is left to it.
const lockRaised = `WITH r AS MATERIALIZED (
	SELECT ` + columns + ` FROM semel_records
	WHERE expires <= ` + asked + ` AND generation > 0 ORDER BY expires LIMIT $1::integer FOR UPDATE SKIP LOCKED)
SELECT ` + now + `, r.* FROM r`

// deleteExpired tests expiry again for the row that it deletes, and not only
// for the list that it works from; in no form that an index has, since that
// would read all that has expired.
const deleteExpired = `DELETE FROM semel_records
WHERE coalesce(expires <= ` + asked + `, FALSE) AND ctid = ANY (ARRAY (
	SELECT ctid FROM semel_records WHERE expires <= ` + asked + ` AND generation = 0
	ORDER BY expires LIMIT $1::integer FOR UPDATE SKIP LOCKED))`

// Sweep removes at most limit expired records, in one short transaction, and
// leaves a tombstone where the generation is above zero (M8). Several sweepers
// share the work.
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	defer s.giveBack(ctx, conn)
	raised, err := s.lockRaised(ctx, conn.Conn(), limit)
	if err != nil {
		return 0, unavailable(err)
	}
	b := &pgx.Batch{}
	var steps []step
	for i := range raised {
		if remove, _ := raised[i].record.Sweep(); !remove {
			continue
		}
		if err := s.queueSave(b, &raised[i]); err != nil {
			return 0, unavailable(err)
		}
		steps = append(steps, wroteOne)
	}
	buried := len(steps)
	b.Queue(s.sql.deleteExpired, limit-buried)
	b.Queue("COMMIT")
	var deleted pgconn.CommandTag
	steps = append(steps, func(res pgx.BatchResults) (err error) {
		deleted, err = res.Exec()
		return err
	}, committed)
	if err := send(ctx, conn.Conn(), b, steps...); err != nil {
		return 0, unavailable(err)
	}
	return buried + int(deleted.RowsAffected()), nil
}

// lockRaised begins the transaction.
func (s *Store) lockRaised(ctx context.Context, conn *pgx.Conn, limit int) (all []row, err error) {
	b := &pgx.Batch{}
	s.queueBegin(b)
	b.Queue(s.sql.lockRaised, limit)
	err = send(ctx, conn, b, s.skipBegin, func(res pgx.BatchResults) error {
		rows, err := res.Query()
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (row, error) { return scan(from) })
		return err
	})
	return all, err
}
