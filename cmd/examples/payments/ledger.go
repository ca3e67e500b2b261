package payments

import (
	"context"
	"database/sql"
)

// AccountName is the name under which order book, service and bank count: see
// [Door.AccountOf].
type AccountName string

// Account is what the ledger says of one door.
type Account struct {
	// Orders is how many distinct intents arrived: see docs/demo.md.
	Orders int64 `json:"orders"`
	// Payments is how many payments the service has stored.
	Payments int64 `json:"payments"`
	// Charges is how often the bank has taken money, and Charged for how many
	// different orders.
	Charges int64 `json:"charges"`
	Charged int64 `json:"charged"`
	// Taken is how much the bank has taken, in minor units.
	Taken int64 `json:"taken"`
}

// Minus returns how much a has grown since b.
func (a Account) Minus(b Account) Account {
	return Account{
		Orders:   a.Orders - b.Orders,
		Payments: a.Payments - b.Payments,
		Charges:  a.Charges - b.Charges,
		Charged:  a.Charged - b.Charged,
		Taken:    a.Taken - b.Taken,
	}
}

// TooMany is how many charges there were beside the first one of each order.
func (a Account) TooMany() int64 { return a.Charges - a.Charged }

// NotCharged is how many orders the bank has taken no money for so far.
func (a Account) NotCharged() int64 { return a.Orders - a.Charged }

// Ledger is the money at a glance: GET /demo/ledger, without the crowd's, and
// GET /demo/crowd/ledger, with nothing else.
type Ledger map[Door]Account

// Totals are the part of all accounts that one process knows.
type Totals map[AccountName]Account

// ReadTotals reads rows that have the name of an account first, and then the
// figures for which into returns where they go.
func ReadTotals(ctx context.Context, db *sql.DB, into func(a *Account) []any, query string, args ...any) (Totals, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	totals := Totals{}
	for rows.Next() {
		var (
			name    AccountName
			account Account
		)
		if err := rows.Scan(append([]any{&name}, into(&account)...)...); err != nil {
			return nil, err
		}
		totals[name] = account
	}
	return totals, rows.Err()
}
