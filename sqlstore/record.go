package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// columns are those of a record, in the order of scan and args.
const columns = `scope, idempotency_key, version, state, is_open, generation, operation_id, token, attempt,
	raw_digest, meaning_digest, policy, credential, trace, all_in_tx, reply_started, reply_kept,
	created, first_started, claimed, renewed, lease_end, finished, expires, status, header, body`

// selectRecord always finds one row, so that the clock is read in the same
// statement as the record, also when there is none. Its first argument is the
// offset of the clock, zero but in tests. The row is locked in a query of its
// own inside, because a database works out what it selects before it waits for
// the lock: the clock would be old by the length of the wait.
const selectRecord = `SELECT {now} + ?, {columns}
FROM (SELECT 1) one LEFT JOIN (SELECT {columns} FROM semel_records WHERE scope = ? AND idempotency_key = ?{lock}) r ON TRUE`

const insertRecord = `INSERT INTO semel_records ({columns})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// updateRecord writes every column and checks the version that was read. Where
// the row was locked by the read it cannot differ.
func updateRecord() string {
	return "UPDATE semel_records SET " + strings.ReplaceAll(columns, ",", " = ?,") + ` = ?
WHERE scope = ? AND idempotency_key = ? AND version = ?`
}

// row is a record with what the table adds to it.
type row struct {
	exists  bool // in the table
	version int64
	record  semel.Record
}

// queryer is a *sql.DB or a *sql.Tx.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// read reads the record of a key with the store's clock.
func (s *Store) read(ctx context.Context, q queryer, statement, scope, key string) (row, error) {
	return scan(q.QueryRowContext(ctx, statement, s.offset(), []byte(scope), []byte(key)).Scan)
}

// scan reads what stands before the clock, if anything does, the clock and the
// columns. All columns are NULL where there is no record.
func scan(into func(...any) error, before ...any) (row, error) {
	var (
		r   row
		now int64
		v   values
	)
	if err := into(slices.Concat(before, []any{&now}, v.targets())...); err != nil {
		return r, err
	}
	r.record.Now = time.UnixMicro(now).UTC()
	if !v.version.Valid {
		return r, nil
	}
	r.exists, r.version = true, v.version.Int64
	return r, v.fill(&r.record)
}

// values are the columns as database/sql reads them.
type values struct {
	scope, key, operationID, token, raw, meaning, credential, header, body []byte
	version, state, generation, attempt, status                            sql.NullInt64
	open, allInTx, replyStarted, replyKept                                 sql.NullBool
	policy, trace                                                          sql.NullString
	created, firstStarted, claimed, renewed, leaseEnd, finished, expires   sql.NullInt64
}

func (v *values) targets() []any {
	return []any{
		&v.scope, &v.key, &v.version, &v.state, &v.open, &v.generation, &v.operationID, &v.token, &v.attempt,
		&v.raw, &v.meaning, &v.policy, &v.credential, &v.trace, &v.allInTx, &v.replyStarted, &v.replyKept,
		&v.created, &v.firstStarted, &v.claimed, &v.renewed, &v.leaseEnd, &v.finished, &v.expires, &v.status, &v.header, &v.body,
	}
}

// fill puts the values into r, which has its Now already.
func (v *values) fill(r *semel.Record) error {
	*r = semel.Record{
		Scope:        string(v.scope),
		Key:          string(v.key),
		State:        semel.State(v.state.Int64),
		Open:         v.open.Bool,
		Generation:   v.generation.Int64,
		Attempt:      v.attempt.Int64,
		Trace:        v.trace.String,
		AllInTx:      v.allInTx.Bool,
		ReplyStarted: v.replyStarted.Bool,
		ReplyKept:    v.replyKept.Bool,
		Created:      instant(v.created),
		FirstStarted: instant(v.firstStarted),
		Claimed:      instant(v.claimed),
		Renewed:      instant(v.renewed),
		LeaseEnd:     instant(v.leaseEnd),
		Finished:     instant(v.finished),
		Expires:      instant(v.expires),
		Now:          r.Now,
	}
	r.Fingerprint.Policy = v.policy.String
	r.Reply.Status = int(v.status.Int64)
	if len(v.body) > 0 {
		r.Reply.Body = v.body
	}
	for _, f := range []struct {
		name string
		to   []byte
		from []byte
	}{
		{"operation_id", r.OperationID[:], v.operationID},
		{"token", r.Token[:], v.token},
		{"raw_digest", r.Fingerprint.Raw[:], v.raw},
		{"meaning_digest", r.Fingerprint.Meaning[:], v.meaning},
		{"credential", r.Credential[:], v.credential},
	} {
		if len(f.from) != len(f.to) {
			return fmt.Errorf("column %s has %d bytes, want %d", f.name, len(f.from), len(f.to))
		}
		copy(f.to, f.from)
	}
	if err := r.Reply.Header.UnmarshalText(v.header); err != nil {
		return fmt.Errorf("column header: %w", err)
	}
	return nil
}

// args are the columns of r as a statement's arguments.
func (r *row) args() ([]any, error) {
	rec := &r.record
	header, err := rec.Reply.Header.MarshalText()
	if err != nil {
		return nil, err
	}
	return []any{
		[]byte(rec.Scope), []byte(rec.Key), r.version, int64(rec.State), rec.Open, rec.Generation, rec.OperationID[:], rec.Token[:], rec.Attempt,
		rec.Fingerprint.Raw[:], rec.Fingerprint.Meaning[:], []byte(rec.Fingerprint.Policy), rec.Credential[:], []byte(rec.Trace), rec.AllInTx, rec.ReplyStarted, rec.ReplyKept,
		micros(rec.Created), micros(rec.FirstStarted), micros(rec.Claimed), micros(rec.Renewed), micros(rec.LeaseEnd), micros(rec.Finished), micros(rec.Expires),
		rec.Reply.Status, notNull(header), notNull(rec.Reply.Body),
	}, nil
}

// saveTx writes r over the row that it was read from, or as a new one.
func (s *Store) saveTx(ctx context.Context, tx *sql.Tx, r *row) error {
	read := r.version
	r.version++
	args, err := r.args()
	if err != nil {
		return err
	}
	statement := s.sql.insert
	if r.exists {
		statement = s.sql.update
		args = append(args, []byte(r.record.Scope), []byte(r.record.Key), read)
	}
	res, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil:
		return err
	case n == 0 && !r.exists:
		return errTaken
	case n != 1:
		return fmt.Errorf("the record changed under the lock: %d rows written", n)
	}
	return nil
}

// errTaken is that of an INSERT whose key was taken since it was looked for.
var errTaken = errors.New("a rival has just inserted the record")

// instant and micros turn a column into a time and back. NULL is the zero
// time.
func instant(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// notNull returns b, but for nil, which drivers bind as NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
