//go:build !race

package handover

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/integration/handover/testdata/sqlc/pgxorders"
	"github.com/semel-dev/semel/internal/integration/handover/testdata/sqlc/sqlorders"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/sqlstore"
)

// placeWithSqlc writes an order with what sqlc has generated for database/sql.
func placeWithSqlc(ctx context.Context, item string) (id int64, err error) {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return 0, err
	}
	return sqlorders.New(tx).InsertOrder(ctx, item)
}

// placeWithSqlcOnPgx writes an order with what sqlc has generated for pgx.
func placeWithSqlcOnPgx(ctx context.Context, item string) (id int64, err error) {
	tx, err := pgxstore.Tx(ctx)
	if err != nil {
		return 0, err
	}
	return pgxorders.New(tx).InsertOrder(ctx, item)
}

// placeGiftWithSqlc places an order, with a gift if that can be had.
func placeGiftWithSqlc(ctx context.Context, item, gift string) error {
	if _, err := placeWithSqlc(ctx, item); err != nil {
		return err
	}
	return savepoint(ctx, func() error {
		_, err := placeWithSqlc(ctx, gift)
		return err
	})
}

// placeOwnWithSqlc writes an order in a transaction of the service's own.
func (s *sqlService) placeWithSqlc(ctx context.Context, call semel.Call, item string) (semel.Result, error) {
	return s.inTx(ctx, call, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		id, err := sqlorders.New(tx).InsertOrder(ctx, item)
		return fmt.Appendf(nil, "order %d", id), err
	})
}
