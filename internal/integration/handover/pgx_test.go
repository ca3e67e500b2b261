//go:build !race

package handover

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/pgxstore"
)

const pgxInsert = `INSERT INTO orders (item) VALUES ($1) RETURNING id`

// placeWithPgx writes an order with pgx.
func placeWithPgx(ctx context.Context, item string) (id int64, err error) {
	tx, err := pgxstore.Tx(ctx)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, pgxInsert, item).Scan(&id)
	return id, err
}

// placeGiftWithPgx places an order, with a gift if that can be had.
func placeGiftWithPgx(ctx context.Context, item, gift string) error {
	if _, err := placeWithPgx(ctx, item); err != nil {
		return err
	}
	tx, err := pgxstore.Tx(ctx)
	if err != nil {
		return err
	}
	pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint: it is undone alone
		_, err := tx.Exec(ctx, pgxInsert, gift)
		return err
	})
	return nil
}
