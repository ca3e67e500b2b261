//go:build !race

package handover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

// bunOrder is the row of an order.
type bunOrder struct {
	bun.BaseModel `bun:"table:orders"`

	ID   int64 `bun:"id,pk,autoincrement"`
	Item string
}

// bunShop writes orders with bun.
type bunShop struct{ db *bun.DB }

func (s bunShop) place(ctx context.Context, item string) (int64, error) {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return 0, err
	}
	order := bunOrder{Item: item}
	_, err = s.db.NewInsert().Model(&order).Conn(tx).Exec(ctx) // each query needs its Conn
	return order.ID, err
}

// placeWithGift places an order, with a gift if that can be had.
func (s bunShop) placeWithGift(ctx context.Context, item, gift string) error {
	if _, err := s.place(ctx, item); err != nil {
		return err
	}
	return savepoint(ctx, func() error {
		_, err := s.place(ctx, gift)
		return err
	})
}

// bunService owns its transactions: Semel saves the reply in them.
type bunService struct {
	db    *bun.DB
	joins *semel.Binding[*sql.Tx] // of semel.Bind[*sql.Tx](guard)
}

func (s *bunService) place(ctx context.Context, call semel.Call, item string) (res semel.Result, err error) {
	var undone error
	err = s.db.RunInTx(ctx, &readCommitted, func(ctx context.Context, tx bun.Tx) error {
		res, undone = s.joins.Join(ctx, tx.Tx, call, func(ctx context.Context) ([]byte, error) {
			order := bunOrder{Item: item}
			_, err := tx.NewInsert().Model(&order).Exec(ctx)
			return fmt.Appendf(nil, "order %d", order.ID), err
		})
		return undone
	})
	if undone != nil {
		return res, errors.Join(undone, s.joins.RolledBack(ctx, res))
	}
	return res, err // of the COMMIT, after which nobody knows: a repeat finds out
}
