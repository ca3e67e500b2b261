package client

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semelhttp"
	"github.com/semel-dev/semel/sqlstore"
)

const databaseVariable = "SEMEL_CLIENT_DATABASE"

var unheard = slog.New(slog.DiscardHandler)

const paymentsTable = `CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, body TEXT NOT NULL)`

// service takes payments until it is killed: the handler's row and the reply in
// one transaction.
func service() error {
	ctx := context.Background()
	handles, err := sqlstore.OpenSQLite("sqlite", os.Getenv(databaseVariable))
	if err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, handles); err != nil {
		return err
	}
	if _, err := handles.Write.ExecContext(ctx, paymentsTable); err != nil {
		return err
	}
	store, err := sqlstore.New(ctx, handles, sqlstore.Config{})
	if err != nil {
		return err
	}
	guard, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{Lease: 3 * time.Second, Logger: unheard})
	if err != nil {
		return err
	}
	mw, err := semelhttp.New(guard, func(*http.Request) (string, error) { return "shop", nil }, semelhttp.Config{Logger: unheard})
	if err != nil {
		return err
	}
	pay, err := mw.Protect(http.HandlerFunc(takePayment), semelhttp.Route{Name: "payments", Mode: semel.Joined, AllInTx: true})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	mux := http.NewServeMux()
	mux.Handle("/payments", pay)
	mux.Handle(semelhttp.WellKnownPath, mw.WellKnown())
	go http.Serve(l, mux) //nolint:errcheck,gosec // it ends with the process.
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func takePayment(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = insertPayment(r.Context(), string(body))
	}
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	w.Write(body)
}

func insertPayment(ctx context.Context, body string) error {
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO payments (body) VALUES (?)`, body)
	return err
}

// payments returns how often each body was paid.
func payments(ctx context.Context, path string) (map[string]int, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT body, count(*) FROM payments GROUP BY body`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	paid := make(map[string]int)
	for rows.Next() {
		var body string
		var n int
		if err := rows.Scan(&body, &n); err != nil {
			return nil, err
		}
		paid[body] = n
	}
	return paid, rows.Err()
}
