//go:build !race

package handover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

// gormOrder is the row of an order.
type gormOrder struct {
	ID   int64
	Item string
}

// TableName is for GORM.
func (gormOrder) TableName() string { return "orders" }

// joinedPool is Semel's transaction as GORM takes one. By Commit and Rollback
// GORM knows that it is inside a transaction, where db.Transaction is a
// savepoint; it calls neither.
type joinedPool struct{ *sqlstore.JoinedTx }

var errSemelEnds = errors.New("the transaction ends after the handler has returned")

func (*joinedPool) Commit() error   { return errSemelEnds }
func (*joinedPool) Rollback() error { return errSemelEnds }

// inHandler returns db inside the transaction of the handler with ctx.
func inHandler(ctx context.Context, db *gorm.DB) (*gorm.DB, error) {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return nil, err
	}
	s := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	s.Statement.ConnPool = &joinedPool{tx}
	return s, nil
}

// gormShop writes orders with GORM.
type gormShop struct{ db *gorm.DB }

func (s gormShop) place(ctx context.Context, item string) (int64, error) {
	db, err := inHandler(ctx, s.db)
	if err != nil {
		return 0, err
	}
	order := gormOrder{Item: item}
	err = db.Create(&order).Error
	return order.ID, err
}

// placeWithGift places an order, with a gift if that can be had.
func (s gormShop) placeWithGift(ctx context.Context, item, gift string) error {
	db, err := inHandler(ctx, s.db)
	if err != nil {
		return err
	}
	if err := db.Create(&gormOrder{Item: item}).Error; err != nil {
		return err
	}
	db.Transaction(func(db *gorm.DB) error { // a savepoint: it is undone alone
		return db.Create(&gormOrder{Item: gift}).Error
	})
	return nil
}

// gormService owns its transactions: Semel saves the reply in them.
type gormService struct {
	db    *gorm.DB
	joins *semel.Binding[*sql.Tx] // of semel.Bind[*sql.Tx](guard)
}

// sqlTx returns what db.Transaction has begun.
func sqlTx(db *gorm.DB) (*sql.Tx, error) {
	pool := db.Statement.ConnPool
	if prepared, ok := pool.(*gorm.PreparedStmtTX); ok { // with PrepareStmt
		pool = prepared.Tx
	}
	tx, ok := pool.(*sql.Tx)
	if !ok {
		return nil, fmt.Errorf("a transaction of GORM is a %T", pool)
	}
	return tx, nil
}

func (s *gormService) place(ctx context.Context, call semel.Call, item string) (res semel.Result, err error) {
	var undone error
	err = s.db.WithContext(ctx).Transaction(func(db *gorm.DB) error {
		tx, err := sqlTx(db)
		if err != nil {
			return err
		}
		res, undone = s.joins.Join(ctx, tx, call, func(ctx context.Context) ([]byte, error) {
			order := gormOrder{Item: item}
			err := db.WithContext(ctx).Create(&order).Error
			return fmt.Appendf(nil, "order %d", order.ID), err
		})
		return undone
	}, &readCommitted)
	if undone != nil {
		return res, errors.Join(undone, s.joins.RolledBack(ctx, res))
	}
	return res, err // of the COMMIT, after which nobody knows: a repeat finds out
}
