package sqlstore

import (
	"context"

	"github.com/semel-dev/semel"
)

var _ semel.Eraser = (*Store)(nil)

// Erase drops the reply of a done record. What the database keeps of a row
// that was changed, in its log, in free pages and in backups, it keeps.
func (s *Store) Erase(ctx context.Context, scope, key string, a semel.Audit) (res semel.EraseResult, err error) {
	err = s.change(ctx, scope, key, func(r *semel.Record) (changed bool, _ *semel.AuditEntry) {
		res, changed = r.Erase()
		return changed, res.AuditEntry(a)
	})
	if err != nil {
		return semel.EraseResult{}, err
	}
	return res, nil
}
