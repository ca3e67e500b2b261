package semel

import (
	"context"
	"time"
)

// Audit is written to an append-only log with every forced Begin and with the
// Finish that settles. Actor and Reason are required.
type Audit struct {
	Actor    string
	Reason   string
	Override bool // the operator waived Force.QuietFor
}

// AuditEntry is one line of a store's append-only log of settlements.
type AuditEntry struct {
	Scope   string
	Key     string
	Attempt int64
	// To is StateRunning for the forced Begin, else what was settled.
	To    State
	Audit Audit
	At    time.Time // on the store's clock
}

// Auditor is the ability of a store to read its audit log back, oldest first.
type Auditor interface {
	Audits(ctx context.Context, scope, key string) ([]AuditEntry, error)
}
