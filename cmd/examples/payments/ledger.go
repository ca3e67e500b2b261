package payments

// Account is what the ledger says of one door.
type Account struct {
	// Orders is how many distinct intents arrived: see docs/demo.md.
	Orders int64 `json:"orders"`
	// Payments is how many payments the service has stored.
	Payments int64 `json:"payments"`
	// Charges is how often the bank has taken money.
	Charges int64 `json:"charges"`
	// Taken is how much the bank has taken, in minor units.
	Taken int64 `json:"taken"`
}

// Minus returns how much a has grown since b.
func (a Account) Minus(b Account) Account {
	return Account{
		Orders:   a.Orders - b.Orders,
		Payments: a.Payments - b.Payments,
		Charges:  a.Charges - b.Charges,
		Taken:    a.Taken - b.Taken,
	}
}

// Ledger is the money at a glance: GET /demo/ledger, without the crowd's, and
// GET /demo/crowd/ledger, with nothing else.
type Ledger map[Door]Account
