package front

import (
	"cmp"
	"context"
	"database/sql"
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/idempotencykey"
)

// book is the order book: how many different orders there were at each door.
// It is what the money is held against, so it is written when the order
// arrives, before anything can go wrong with it.
type book struct{ db *sql.DB }

func openBook(ctx context.Context, db *sql.DB) (*book, error) {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (
	seq      INTEGER PRIMARY KEY,
	door     TEXT NOT NULL,
	customer TEXT NOT NULL,
	intent   TEXT,
	UNIQUE (door, customer, intent))`)
	return &book{db: db}, err
}

// note enters the order of r, unless it is there already, and returns its
// number. It is zero for what the service will not take for an order.
func (b *book) note(ctx context.Context, door payments.Door, r *http.Request, o payments.Order) (int64, error) {
	intent, ok := intentOf(door, r)
	if !ok || !o.Payable() {
		return 0, nil
	}
	// NULLs are never equal, so an order without a name is always new. An update
	// that changes nothing returns the number of one that is there.
	var number int64
	err := b.db.QueryRowContext(ctx, `INSERT INTO orders (door, customer, intent) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET intent = intent RETURNING seq`,
		string(door.AccountOf(payments.CustomerOf(r))), payments.CustomerOf(r), sql.NullString{String: intent, Valid: intent != ""}).
		Scan(&number)
	return number, err
}

// intentOf returns what tells an order from the next one: the order id, then
// the key, and with neither each request is an order of its own. It reports
// false for a request that its door refuses: without a key it takes, or from
// nobody it could name.
func intentOf(door payments.Door, r *http.Request) (intent string, ok bool) {
	key, err := idempotencykey.Parse(r.Header.Values(payments.HeaderKey), false)
	switch door {
	case payments.Keyed:
		if _, unnamed := payments.ScopeOf(r); unnamed != nil || err != nil {
			return "", false
		}
	case payments.Naive:
		sent, problem := payments.NaiveKeyOf(r)
		if problem != nil {
			return "", false
		}
		key = cmp.Or(key, sent)
	}
	if order := r.Header.Get(payments.HeaderOrder); order != "" {
		return "order:" + order, true
	}
	if key == "" {
		return "", true
	}
	return "key:" + key, true
}

// numbers returns the numbers of a customer's order of that name, one for each
// door that it came to.
func (b *book) numbers(ctx context.Context, customer, order string) (numbers []string, err error) {
	rows, err := b.db.QueryContext(ctx, `SELECT seq FROM orders WHERE customer = ? AND intent = ?`, customer, "order:"+order)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number string
		if err := rows.Scan(&number); err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, rows.Err()
}

// counts returns the number of orders in each account.
func (b *book) counts(ctx context.Context) (payments.Totals, error) {
	into := func(a *payments.Account) []any { return []any{&a.Orders} }
	return payments.ReadTotals(ctx, b.db, into, `SELECT door, count(*) FROM orders GROUP BY door`)
}
