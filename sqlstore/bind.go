package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-dev/semel"
)

// FinishTx is Finish inside tx, a transaction that the caller began and ends:
// see semel.Bind. It is one of the database that the store is in. With SQLite
// it must have the write lock, as those of Handles.Write do: Join, whose claim
// then waits for tx, is of no use there, and joined mode is. Begin it in READ
// COMMITTED, and roll it back after an error of any of its statements: MariaDB
// goes on as if nothing had happened after it has rolled everything back, and
// nobody watches over a transaction that is the caller's. Where the store is
// durable, so is that commit, unless its caller sets PostgreSQL's
// synchronous_commit to off afterwards: a reply could then be shown that a crash
// takes back.
//
// After an error tx is rolled back, so that it cannot be committed. Errors match
// semel.ErrStoreUnavailable.
func (s *Store) FinishTx(ctx context.Context, tx *sql.Tx, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	held, err := s.finishTx(ctx, tx, c, p)
	if err != nil {
		tx.Rollback() //nolint:errcheck // the first error is the one that matters.
		return semel.Held{}, unavailable(err)
	}
	return held, nil
}

// finishTx writes the end of a claim into a business transaction, unless the
// claim is not the latest any more.
func (s *Store) finishTx(ctx context.Context, tx *sql.Tx, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	if s.dialect.joinedFinish {
		if held, err := s.finishOn(ctx, tx, c, p); err != nil || held.Status != 0 {
			return held, err
		}
	}
	if s.sql.waits != "" {
		if _, err := tx.ExecContext(ctx, s.sql.waits); err != nil {
			return semel.Held{}, err
		}
	}
	var held semel.Held
	changed, err := s.changeTx(ctx, tx, c.Scope, c.Key, finishing(c, p, &held))
	if err == nil && !changed && held.Status == semel.HeldYes {
		// The claim has its end already, and this transaction is no part of it.
		held.Status = semel.HeldFinal
	}
	return held, err
}
