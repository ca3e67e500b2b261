//go:build !race

package handover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

// sqlShop writes orders with database/sql.
type sqlShop struct{ insert string }

func (s sqlShop) place(ctx context.Context, item string) (id int64, err error) {
	tx, err := sqlstore.Tx(ctx) // opens it; Semel commits or rolls back
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.insert, item).Scan(&id)
	return id, err
}

// placeWithGift places an order, with a gift if that can be had.
func (s sqlShop) placeWithGift(ctx context.Context, item, gift string) error {
	if _, err := s.place(ctx, item); err != nil {
		return err
	}
	return savepoint(ctx, func() error {
		_, err := s.place(ctx, gift)
		return err
	})
}

// savepoint runs do as a part of the transaction that is undone alone if it
// fails.
func savepoint(ctx context.Context, do func() error) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT gift"); err != nil {
		return err
	}
	if do() != nil {
		_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT gift")
	}
	return err
}

// readCommitted is how a service begins a transaction of its own.
var readCommitted = sql.TxOptions{Isolation: sql.LevelReadCommitted}

// sqlService owns its transactions: Semel saves the reply in them.
type sqlService struct {
	db    *sql.DB
	joins *semel.Binding[*sql.Tx] // of semel.Bind[*sql.Tx](guard)
}

func (s *sqlService) inTx(ctx context.Context, call semel.Call, work func(context.Context, *sql.Tx) ([]byte, error)) (semel.Result, error) {
	tx, err := s.db.BeginTx(ctx, &readCommitted)
	if err != nil {
		return semel.Result{}, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
	res, err := s.joins.Join(ctx, tx, call, func(ctx context.Context) ([]byte, error) { return work(ctx, tx) })
	if err != nil {
		tx.Rollback() //nolint:errcheck // COMMIT is never sent.
		return res, errors.Join(err, s.joins.RolledBack(ctx, res))
	}
	return res, tx.Commit() // after an error of it nobody knows: a repeat finds out
}

func (s *sqlService) place(insert string) placing {
	return func(ctx context.Context, call semel.Call, item string) (semel.Result, error) {
		return s.inTx(ctx, call, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			var id int64
			err := tx.QueryRowContext(ctx, insert, item).Scan(&id)
			return fmt.Appendf(nil, "order %d", id), err
		})
	}
}
