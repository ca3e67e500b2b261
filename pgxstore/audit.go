package pgxstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

const insertAudit = `INSERT INTO semel_audit (at, scope, idempotency_key, attempt, settled_to, actor, reason, override)
VALUES ($1::bigint, $2::bytea, $3::bytea, $4::bigint, $5::smallint, $6::text, $7::text, $8::boolean)`

const selectAudits = `SELECT at, attempt, settled_to, actor, reason, override FROM semel_audit
WHERE scope = $1::bytea AND idempotency_key = $2::bytea ORDER BY id`

func (s *Store) queueAudit(b *pgx.Batch, e *semel.AuditEntry) {
	b.Queue(s.sql.audit, e.At.UnixMicro(), []byte(e.Scope), []byte(e.Key),
		e.Attempt, int16(e.To), e.Audit.Actor, e.Audit.Reason, e.Audit.Override)
}

// Audits returns the settlements and erasures of a key, oldest first.
func (s *Store) Audits(ctx context.Context, scope, key string) ([]semel.AuditEntry, error) {
	var all []semel.AuditEntry
	err := s.many(ctx, func(from pgx.CollectableRow) error {
		e := semel.AuditEntry{Scope: scope, Key: key}
		var (
			at int64
			to int16
		)
		err := from.Scan(&at, &e.Attempt, &to, &e.Audit.Actor, &e.Audit.Reason, &e.Audit.Override)
		e.At, e.To = time.UnixMicro(at).UTC(), semel.State(to) //nolint:gosec // it was one.
		all = append(all, e)
		return err
	}, s.sql.audits, []byte(scope), []byte(key))
	if err != nil {
		return nil, unavailable(err)
	}
	return all, nil
}
