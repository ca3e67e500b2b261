package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel/internal/assert"
)

// idle is a connector whose connections are asked for nothing.
type idle struct{ failing }

type idleConn struct{}

func (idle) Connect(context.Context) (driver.Conn, error) { return idleConn{}, nil }

func (idleConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (idleConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (idleConn) Close() error                        { return nil }

func TestWhoWaitsForAConnectionGetsItInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(idle{})
		defer db.Close()
		db.SetMaxOpenConns(1)
		one := make(turns, 1)
		_, first, err := one.connOf(t.Context(), db)
		assert.NoError(t, err)
		var came []int
		const waiting = 20
		for i := range waiting {
			go func() {
				_, giveBack, err := one.connOf(t.Context(), db)
				assert.NoError(t, err)
				came = append(came, i)
				giveBack()
			}()
			synctest.Wait()
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = one.connOf(ended, db)
		assert.ErrorIs(t, err, context.Canceled)
		first()
		first() // which gives nothing of another's back
		synctest.Wait()
		assert.Equal(t, len(came), waiting)
		assert.True(t, slices.IsSorted(came), "they came in turn: %v", came)
		assert.Equal(t, len(one), 0, "turns that are taken")
	})
}
