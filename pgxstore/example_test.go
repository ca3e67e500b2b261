package pgxstore_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/pgxstore"
)

// A handler whose work is SQL alone: claim, order and reply are one commit.
func Example() { //nolint:testableexamples // it needs a server.
	ctx := context.Background()
	const url = "postgres://shop@db.internal/shop"
	if err := pgxstore.Migrate(ctx, url); err != nil {
		fmt.Println(err)
		return
	}
	store, err := pgxstore.Open(ctx, url, pgxstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	guard, err := semel.New(store, semel.Hold(), semel.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := semel.Call{
		Scope:       "customer:1",
		Key:         "5f0c6c0e",
		Fingerprint: semel.FingerprintOf([]byte("two lamps")),
		Mode:        semel.Atomic,
	}
	res, err := guard.Do(ctx, call, func(ctx context.Context) ([]byte, error) {
		tx, err := pgxstore.Tx(ctx)
		if err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, `INSERT INTO orders (item) VALUES ($1)`, "two lamps")
		return []byte("ordered"), err
	})
	fmt.Println(res.Outcome, err)
}

// In an HTTP handler the transaction is in the request's context.
func ExampleTx() { //nolint:testableexamples // the same.
	pay := func(w http.ResponseWriter, r *http.Request) {
		tx, err := pgxstore.Tx(r.Context())
		if err != nil {
			http.Error(w, "no transaction", http.StatusServiceUnavailable)
			return
		}
		// With sqlc: db.New(tx).InsertPayment(r.Context(), …)
		if _, err := tx.Exec(r.Context(), `INSERT INTO payments (cents) VALUES ($1)`, 4200); err != nil {
			http.Error(w, "not paid", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated) // commits
	}
	_ = http.HandlerFunc(pay) // behind semelhttp, with Route{Mode: semel.Joined}
}

// shop is a service that owns its transactions.
type shop struct {
	pool  *pgxpool.Pool
	joins *semel.Binding[pgx.Tx] // of semel.Bind[pgx.Tx](guard)
}

// order claims the key, writes the order and saves the reply in one
// transaction, which is the shop's own.
func (s *shop) order(ctx context.Context, call semel.Call, item string) (semel.Result, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return semel.Result{}, err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after Commit it has nothing to do.
	res, err := s.joins.Join(ctx, tx, call, func(ctx context.Context) ([]byte, error) {
		_, err := tx.Exec(ctx, `INSERT INTO orders (item) VALUES ($1)`, item)
		return []byte("ordered"), err
	})
	switch {
	case err != nil:
		if undone := tx.Rollback(ctx); undone == nil {
			s.joins.RolledBack(ctx, res) //nolint:errcheck // the claim then lapses.
		}
		return res, err
	case !res.Ran:
		return res, nil // the saved reply, or why there is none
	}
	// An error of Commit may mean that nobody knows: a repeat finds out.
	return res, tx.Commit(ctx)
}

// A service layer that begins and commits by itself.
func Example_join() { //nolint:testableexamples // the same.
	s := &shop{}
	_ = s.order
}
