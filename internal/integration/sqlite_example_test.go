package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

// order runs twice what it should do once. In joined mode the work writes
// through sqlstore.Tx, and what it wrote is committed together with the reply.
func order(ctx context.Context, path string) error {
	handles, err := sqlstore.OpenSQLite("sqlite", path)
	if err != nil {
		return err
	}
	defer handles.Close()
	if _, err := handles.Write.ExecContext(ctx, "CREATE TABLE orders (item TEXT)"); err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, handles); err != nil {
		return err
	}
	store, err := sqlstore.New(ctx, handles, sqlstore.Config{})
	if err != nil {
		return err
	}
	guard, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{})
	if err != nil {
		return err
	}
	call := semel.Call{
		Scope:       "orders:c_1",
		Key:         "7c9e6679-7425-40de-944b-e07fc1f90ae7",
		Fingerprint: semel.FingerprintOf([]byte("a book")),
		Mode:        semel.Joined,
		AllInTx:     true,
	}
	for range 2 {
		result, err := guard.Run(ctx, call, func(ctx context.Context) semel.Completion {
			tx, err := sqlstore.Tx(ctx)
			if err != nil {
				return semel.Completion{} // nothing was written
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO orders (item) VALUES (?)", "a book"); err != nil {
				return semel.Completion{}
			}
			return semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Status: 201}}
		})
		if err != nil {
			return err
		}
		fmt.Println(result.Reply.Status, "ran:", result.Ran)
	}
	var orders int
	if err := handles.Read.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders); err != nil {
		return err
	}
	fmt.Println("orders:", orders)
	return nil
}

func Example_sqlite() {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := order(context.Background(), filepath.Join(dir, "orders.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 201 ran: true
	// 201 ran: false
	// orders: 1
}
