package semel

import (
	"context"
	"time"
)

// Audit is written to an append-only log with every forced Begin, with the
// Finish that settles, and with every reply that is erased. Actor and Reason
// are required.
type Audit struct {
	Actor    string
	Reason   string
	Override bool // the operator waived Force.QuietFor
}

// AuditEntry is one line of a store's append-only log of settlements and
// erasures, written together with the record: see [BeginParams.AuditEntry],
// [FinishParams.AuditEntry] and [EraseResult.AuditEntry].
type AuditEntry struct {
	Scope   string
	Key     string
	Attempt int64
	// To is StateRunning for the forced Begin, StateAbsent for a reply that was
	// erased, else what was settled.
	To    State
	Audit Audit
	At    time.Time // on the store's clock
}

// Auditor is the ability of a store to keep the audit log and read it back.
type Auditor interface {
	// Audits returns the lines of a key, oldest first. They outlive its record.
	Audits(ctx context.Context, scope, key string) ([]AuditEntry, error)
}

// AuditEntry returns the line that a Begin with the answer res leaves in the
// log, or nil. A forced Begin leaves one with the claim it makes, and none when
// it is sent again or refused.
func (p *BeginParams) AuditEntry(res *BeginResult) *AuditEntry {
	// Only a new claim has a From, and a forced one never finds a key absent.
	if p.Force == nil || res.From == StateAbsent {
		return nil
	}
	return res.Record.auditEntry(p.Force.Audit)
}

// AuditEntry returns the line that a Finish leaves in the log, or nil. r is the
// record after it, and changed whether it changed that: a Finish that settles
// leaves one line, however often it is sent.
func (p *FinishParams) AuditEntry(r *Record, changed bool) *AuditEntry {
	if p.Settlement == nil || !changed {
		return nil
	}
	return r.auditEntry(p.Settlement.Audit)
}

func (r *Record) auditEntry(a Audit) *AuditEntry {
	return &AuditEntry{Scope: r.Scope, Key: r.Key, Attempt: r.Attempt, To: r.State, Audit: a, At: r.Now}
}
