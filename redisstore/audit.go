package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-dev/semel"
)

// The fields of an entry of the audit log, a stream for each key. step.lua adds
// the time.
const (
	auditAt       = "at"
	auditAttempt  = "attempt"
	auditTo       = "to"
	auditActor    = "actor"
	auditReason   = "reason"
	auditOverride = "override"
)

// entryWords are the names and values of an entry, but for its time.
func entryWords(e *semel.AuditEntry) []string {
	if e == nil {
		return nil
	}
	return []string{
		auditAttempt, strconv.FormatInt(e.Attempt, 10), auditTo, strconv.Itoa(int(e.To)),
		auditActor, e.Audit.Actor, auditReason, e.Audit.Reason, auditOverride, flag(e.Audit.Override),
	}
}

// Audits returns the settlements and erasures of a key, oldest first.
func (s *Store) Audits(ctx context.Context, scope, key string) ([]semel.AuditEntry, error) {
	entries, err := s.client.Do(ctx, s.client.B().Xrange().Key(s.placeOf(scope, key).audit()).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		return nil, unavailable(err)
	}
	all := make([]semel.AuditEntry, 0, len(entries))
	for _, entry := range entries {
		e, err := auditEntry(entry)
		if err != nil {
			return nil, unavailable(fmt.Errorf("entry %s of the audit log: %w", entry.ID, err))
		}
		e.Scope, e.Key = scope, key
		all = append(all, e)
	}
	return all, nil
}

func auditEntry(entry rueidis.XRangeEntry) (e semel.AuditEntry, err error) {
	f := entry.FieldValues
	at, err := strconv.ParseInt(f[auditAt], 10, 64)
	if err != nil {
		return e, err
	}
	e.At = time.UnixMicro(at).UTC()
	if err := parse(f[auditAttempt], &e.Attempt); err != nil {
		return e, err
	}
	e.Audit = semel.Audit{Actor: f[auditActor], Reason: f[auditReason], Override: f[auditOverride] != ""}
	return e, parse(f[auditTo], &e.To)
}
