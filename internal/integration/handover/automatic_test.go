//go:build !race

package handover

import (
	"context"
	"net/http"
	"testing"

	"github.com/uptrace/bun"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// What the libraries begin and end by themselves, or offer to, inside a joined
// handler.

// run runs work as a handler that answers 201 whatever work did, and returns
// the outcome.
func (l library) run(t *testing.T, key string, work func(ctx context.Context)) string {
	t.Helper()
	return l.send(t, key, func(w http.ResponseWriter, r *http.Request) {
		work(r.Context())
		w.WriteHeader(http.StatusCreated)
	}).Header().Get("Semel-Outcome")
}

// automatic are claims of one library.
var automatic = map[string]map[string]func(*testing.T, library){
	"GORM": {
		"a write, Begin, Commit and Rollback begin and end nothing":    gormEndsNothing,
		"a batch that fails half-way is undone whole":                  gormBatch,
		"the bare transaction lets nothing nest":                       gormBare,
		"but a session with PrepareStmt is no part of the transaction": gormLeaves,
	},
	"bun": {
		"COMMIT is refused": bunCommit,
		"but RunInTx and a query without Conn are no part of the transaction": bunLeaves,
	},
	"ent": {
		"a write of several statements that fails half-way is undone whole": entWhole,
		"a transaction of ent is a savepoint":                               entCommitsNothing,
	},
}

// gormIn is a session in the transaction of a handler.
func gormIn(t *testing.T, ctx context.Context, l library) *gorm.DB {
	t.Helper()
	base, err := gorm.Open(l.gorm(l.db), &gorm.Config{Logger: logger.Discard})
	assert.NoError(t, err)
	db, err := inHandler(ctx, base)
	assert.NoError(t, err)
	return db
}

func gormEndsNothing(t *testing.T, l library) {
	outcome := l.run(t, "begin", func(ctx context.Context) {
		db := gormIn(t, ctx, l)
		assert.NoError(t, db.Create(&gormOrder{Item: "begin"}).Error)
		assert.ErrorIs(t, db.Begin().Error, gorm.ErrInvalidTransaction)
		assert.ErrorIs(t, db.Session(&gorm.Session{}).Commit().Error, errSemelEnds)
		assert.ErrorIs(t, db.Session(&gorm.Session{}).Rollback().Error, errSemelEnds)
		for _, statement := range []string{"BEGIN", "COMMIT", "ROLLBACK"} {
			assert.ErrorIs(t, db.Exec(statement).Error, semel.ErrTxMisuse)
		}
		assert.Equal(t, l.orders(t, "begin"), 0, "orders that others see meanwhile")
	})
	assert.Equal(t, outcome, "executed")
	assert.Equal(t, l.orders(t, "begin"), 1)
}

func gormBatch(t *testing.T, l library) {
	outcome := l.run(t, "batch", func(ctx context.Context) {
		err := gormIn(t, ctx, l).CreateInBatches([]gormOrder{{Item: "first"}, {Item: "second"}, {Item: taken}}, 1).Error
		assert.True(t, err != nil, "an item that is taken is refused")
	})
	assert.Equal(t, outcome, "executed")
	assert.Equal(t, l.orders(t, "first")+l.orders(t, "second"), 0)
}

func gormBare(t *testing.T, l library) {
	outcome := l.run(t, "bare", func(ctx context.Context) {
		db := gormIn(t, ctx, l)
		tx, err := sqlstore.Tx(ctx)
		assert.NoError(t, err)
		db.Statement.ConnPool = tx
		assert.NoError(t, db.Create(&gormOrder{Item: "bare"}).Error)
		assert.ErrorIs(t, db.Transaction(func(*gorm.DB) error { return nil }), gorm.ErrInvalidTransaction)
	})
	assert.Equal(t, outcome, "executed")
	assert.Equal(t, l.orders(t, "bare"), 1)
}

func gormLeaves(t *testing.T, l library) {
	l.run(t, "leaves", func(ctx context.Context) {
		db := gormIn(t, ctx, l).Session(&gorm.Session{PrepareStmt: true})
		assert.NoError(t, db.Create(&gormOrder{Item: "leaves"}).Error)
		assert.Equal(t, l.orders(t, "leaves"), 1, "orders that others see before the end")
	})
}

func bunCommit(t *testing.T, l library) {
	outcome := l.run(t, "commit", func(ctx context.Context) {
		_, err := l.place(ctx, "commit")
		assert.NoError(t, err)
		tx, err := sqlstore.Tx(ctx)
		assert.NoError(t, err)
		_, err = bun.NewDB(l.db, l.bun()).NewRaw("COMMIT").Conn(tx).Exec(ctx)
		assert.ErrorIs(t, err, semel.ErrTxMisuse)
	})
	assert.Equal(t, outcome, "executed")
	assert.Equal(t, l.orders(t, "commit"), 1)
}

func bunLeaves(t *testing.T, l library) {
	if l.oneWriter {
		return // it waits for the one that Semel has open
	}
	w := l.send(t, "apart", func(w http.ResponseWriter, r *http.Request) {
		_, err := l.place(r.Context(), "joined")
		assert.NoError(t, err)
		db := bun.NewDB(l.db, l.bun())
		assert.NoError(t, db.RunInTx(r.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.NewInsert().Model(&bunOrder{Item: "apart"}).Exec(ctx)
			return err
		}))
		_, err = db.NewInsert().Model(&bunOrder{Item: "without"}).Exec(r.Context())
		assert.NoError(t, err)
		w.WriteHeader(http.StatusInternalServerError)
	})
	is(t, w, http.StatusInternalServerError, "released")
	assert.Equal(t, l.orders(t, "joined"), 0)
	assert.Equal(t, l.orders(t, "apart")+l.orders(t, "without"), 2)
}

func entWhole(t *testing.T, l library) {
	shop := entShop{l.ent}
	outcome := l.run(t, "whole", func(ctx context.Context) {
		assert.True(t, shop.placeWhole(ctx, "whole") != nil, "a part that does not exist is refused")
		_, err := shop.place(ctx, "simple")
		assert.NoError(t, err, "afterwards")
	})
	assert.Equal(t, outcome, "executed")
	assert.Equal(t, l.orders(t, "whole"), 0)
	assert.Equal(t, l.orders(t, "simple"), 1)
}

func entCommitsNothing(t *testing.T, l library) {
	w := l.send(t, "nested", func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, entShop{l.ent}.placeWithGift(r.Context(), "with a gift", "the gift"))
		w.WriteHeader(http.StatusInternalServerError)
	})
	is(t, w, http.StatusInternalServerError, "released")
	assert.Equal(t, l.orders(t, "with a gift")+l.orders(t, "the gift"), 0)
}
