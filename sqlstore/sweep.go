package sqlstore

import (
	"context"
	"database/sql"
)

// selectRaised finds the expired records that leave a tombstone.
const selectRaised = `SELECT {now} + ?, {columns} FROM semel_records
WHERE expires <= {asked} + ? AND generation > 0 ORDER BY expires LIMIT ?{lockFree}`

// Sweep removes at most limit expired records, in one short transaction, and
// leaves a tombstone where the generation is above zero (M8).
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	removed := 0
	err := s.write(ctx, func(tx *sql.Tx) (bool, error) {
		buried, err := s.buryTx(ctx, tx, limit)
		if err != nil {
			return false, err
		}
		offset := s.offset()
		res, err := tx.ExecContext(ctx, s.sql.sweep, offset, limit-buried, offset)
		if err != nil {
			return false, err
		}
		deleted, err := res.RowsAffected()
		removed = buried + int(deleted)
		return removed > 0, err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// buryTx turns expired records of a raised generation into tombstones.
func (s *Store) buryTx(ctx context.Context, tx *sql.Tx, limit int) (int, error) {
	expired, err := s.raisedTx(ctx, tx, limit)
	if err != nil {
		return 0, err
	}
	buried := 0
	for i := range expired {
		if remove, _ := expired[i].record.Sweep(); !remove {
			continue
		}
		if err := s.saveTx(ctx, tx, &expired[i]); err != nil {
			return buried, err
		}
		buried++
	}
	return buried, nil
}

func (s *Store) raisedTx(ctx context.Context, tx *sql.Tx, limit int) ([]row, error) {
	offset := s.offset()
	rows, err := tx.QueryContext(ctx, s.sql.raised, offset, offset, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		r, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
