//go:build !race

package handover

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/integration/handover/testdata/ent"
	"github.com/semel-dev/semel/sqlstore"
)

// joinedDriver is an open transaction as ent takes a driver. What ent begins in
// it, for a write of several statements or by client.Tx, is a savepoint.
type joinedDriver struct {
	entsql.Conn

	name string // of the dialect
}

var _ dialect.Driver = joinedDriver{}

func (d joinedDriver) Dialect() string { return d.name }
func (d joinedDriver) Close() error    { return nil }

func (d joinedDriver) Tx(ctx context.Context) (dialect.Tx, error) {
	return entSavepoint{d, ctx}, d.Exec(ctx, "SAVEPOINT ent", []any{}, nil)
}

type entSavepoint struct {
	joinedDriver

	ctx context.Context
}

func (s entSavepoint) Commit() error        { return s.run("RELEASE SAVEPOINT ent") }
func (s entSavepoint) Rollback() error      { return s.run("ROLLBACK TO SAVEPOINT ent") }
func (s entSavepoint) run(sql string) error { return s.Exec(s.ctx, sql, []any{}, nil) }

// entIn returns a client of ent inside a transaction: Semel's, or a *sql.Tx.
func entIn(tx entsql.ExecQuerier, name string) *ent.Client {
	return ent.NewClient(ent.Driver(joinedDriver{entsql.Conn{ExecQuerier: tx}, name}))
}

// entShop writes orders with ent.
type entShop struct{ dialect string }

func (s entShop) place(ctx context.Context, item string) (int64, error) {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return 0, err
	}
	order, err := entIn(tx, s.dialect).Order.Create().SetItem(item).Save(ctx)
	if err != nil {
		return 0, err
	}
	return int64(order.ID), nil
}

// placeWithGift places an order, with a gift if that can be had.
func (s entShop) placeWithGift(ctx context.Context, item, gift string) error {
	if _, err := s.place(ctx, item); err != nil {
		return err
	}
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	part, err := entIn(tx, s.dialect).Tx(ctx) // a savepoint: it is undone alone
	if err != nil {
		return err
	}
	if part.Order.Create().SetItem(gift).Exec(ctx) != nil {
		return part.Rollback()
	}
	return part.Commit()
}

// placeWhole writes an order whose part is none: ent finds out after its first
// statement.
func (s entShop) placeWhole(ctx context.Context, item string) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	return entIn(tx, s.dialect).Order.Create().SetItem(item).AddPartIDs(1 << 30).Exec(ctx)
}

// entService writes in transactions of its own.
type entService struct {
	sqlService

	dialect string
}

func (s *entService) place(ctx context.Context, call semel.Call, item string) (semel.Result, error) {
	return s.inTx(ctx, call, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		order, err := entIn(tx, s.dialect).Order.Create().SetItem(item).Save(ctx)
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, "order %d", order.ID), nil
	})
}
