package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-dev/semel"
)

const insertAudit = `INSERT INTO semel_audit (at, scope, idempotency_key, attempt, settled_to, actor, reason, override)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const selectAudits = `SELECT at, attempt, settled_to, actor, reason, override FROM semel_audit
WHERE scope = ? AND idempotency_key = ? ORDER BY id`

func (s *Store) auditTx(ctx context.Context, tx *sql.Tx, e *semel.AuditEntry) error {
	_, err := tx.ExecContext(ctx, s.sql.audit, e.At.UnixMicro(), []byte(e.Scope), []byte(e.Key),
		e.Attempt, int64(e.To), e.Audit.Actor, e.Audit.Reason, e.Audit.Override)
	return err
}

// Audits returns the settlements and erasures of a key, oldest first.
func (s *Store) Audits(ctx context.Context, scope, key string) ([]semel.AuditEntry, error) {
	rows, err := s.handles.ownRead.QueryContext(ctx, s.sql.auditsOf, []byte(scope), []byte(key))
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var all []semel.AuditEntry
	for rows.Next() {
		e := semel.AuditEntry{Scope: scope, Key: key}
		var at, to int64
		if err := rows.Scan(&at, &e.Attempt, &to, &e.Audit.Actor, &e.Audit.Reason, &e.Audit.Override); err != nil {
			return nil, unavailable(err)
		}
		e.At, e.To = time.UnixMicro(at).UTC(), semel.State(to)
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable(err)
	}
	return all, nil
}
