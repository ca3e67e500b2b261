package pgxstore

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// columns are those of a record, in the order of targets and args.
const columns = `scope, idempotency_key, version, state, is_open, generation, operation_id, token, attempt,
	raw_digest, meaning_digest, policy, credential, trace, all_in_tx, reply_started, reply_kept,
	created, first_started, claimed, renewed, lease_end, finished, expires, status, header, body`

// now is the store's clock, in microseconds since 1970. Unlike now() it goes on
// inside a transaction (R23).
const now = `(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint`

// asked is when the statement was sent: one value for the whole of it, so that
// an index is searched for it, which it is not for a volatile function.
const asked = `(extract(epoch FROM pg_catalog.statement_timestamp()) * 1000000)::bigint`

// clock reads it once for a statement.
const clock = `clock AS MATERIALIZED (SELECT ` + now + ` AS now)`

// selectRecord always finds one row, so that the clock is read in the same
// statement as the record, also when there is none.
const selectRecord = `WITH r AS MATERIALIZED (SELECT ` + columns + ` FROM semel_records WHERE scope = $1::bytea AND idempotency_key = $2::bytea)
SELECT ` + now + `, r.* FROM (SELECT) AS one LEFT JOIN r ON true`

// lockRecord does too, and reads the clock once it has the row's lock: the join
// comes after the wait.
const lockRecord = `WITH r AS MATERIALIZED (SELECT ` + columns + ` FROM semel_records WHERE scope = $1::bytea AND idempotency_key = $2::bytea FOR UPDATE)
SELECT ` + now + `, r.* FROM (SELECT) AS one LEFT JOIN r ON true`

// insertRecord makes a row of the arguments of args. Times are given from a
// base: that of the record's life in $28, of its latest claim in $29 and of its
// end in $30, where NULL is the clock at the time of writing.
const insertRecord = `INSERT INTO semel_records (` + columns + `)
SELECT $1::bytea, $2::bytea, $3::bigint, $4::smallint, $5::boolean, $6::bigint, $7::bytea, $8::bytea, $9::bigint,
	$10::bytea, $11::bytea, $12::bytea, $13::bytea, $14::bytea, $15::boolean, $16::boolean, $17::boolean,
	coalesce($28::bigint, clock.now) + $18::bigint, coalesce($28::bigint, clock.now) + $19::bigint,
	coalesce($29::bigint, clock.now) + $20::bigint, coalesce($29::bigint, clock.now) + $21::bigint, coalesce($29::bigint, clock.now) + $22::bigint,
	coalesce($30::bigint, clock.now) + $23::bigint, coalesce($30::bigint, clock.now) + $24::bigint,
	$25::integer, $26::bytea, $27::bytea
FROM clock`

// updateRecord writes the same over the version that was read, $31.
const updateRecord = `UPDATE semel_records SET
	version = $3::bigint, state = $4::smallint, is_open = $5::boolean, generation = $6::bigint, operation_id = $7::bytea, token = $8::bytea, attempt = $9::bigint,
	raw_digest = $10::bytea, meaning_digest = $11::bytea, policy = $12::bytea, credential = $13::bytea, trace = $14::bytea,
	all_in_tx = $15::boolean, reply_started = $16::boolean, reply_kept = $17::boolean,
	created = coalesce($28::bigint, clock.now) + $18::bigint, first_started = coalesce($28::bigint, clock.now) + $19::bigint,
	claimed = coalesce($29::bigint, clock.now) + $20::bigint, renewed = coalesce($29::bigint, clock.now) + $21::bigint,
	lease_end = coalesce($29::bigint, clock.now) + $22::bigint,
	finished = coalesce($30::bigint, clock.now) + $23::bigint, expires = coalesce($30::bigint, clock.now) + $24::bigint,
	status = $25::integer, header = $26::bytea, body = $27::bytea
FROM clock WHERE scope = $1::bytea AND idempotency_key = $2::bytea AND version = $31::bigint`

// saveOld is sent where the row is locked.
const saveOld = `WITH ` + clock + ` ` + updateRecord

// epoch is what times are counted from that the server is to add to its clock.
var epoch = time.UnixMicro(0)

// base is what the times of a row are counted from: a number, or nil for the
// clock at the time of writing.
type base *int64

// asTheyAre is the base of times that were read from the store.
var asTheyAre base = new(int64)

// row is a record with what the table adds to it. Without a row in the table
// its version is 0.
type row struct {
	version int64
	record  semel.Record

	// What the record's times are counted from when it is written.
	lifeBase, claimBase, endBase base
}

// scan reads the clock and the columns, after what is in first. All columns
// are NULL where there is no record.
func scan(from pgx.Row, first ...any) (row, error) {
	var (
		r   row
		now int64
		v   values
	)
	if err := from.Scan(append(append(first, &now), v.targets()...)...); err != nil {
		return r, err
	}
	r.record.Now = time.UnixMicro(now).UTC()
	r.lifeBase, r.claimBase, r.endBase = asTheyAre, asTheyAre, asTheyAre
	if v.version == nil {
		return r, nil
	}
	r.version = *v.version
	return r, v.fill(&r.record)
}

// fromClock makes the times that a claim has just set, from the record's Now,
// those of the clock when it is written.
func (r *row) fromClock(newLife bool) {
	rec := &r.record
	r.claimBase = nil
	set := []*time.Time{&rec.Claimed, &rec.Renewed, &rec.LeaseEnd}
	if newLife {
		r.lifeBase = nil
		set = append(set, &rec.Created, &rec.FirstStarted)
	}
	for _, t := range set {
		*t = epoch.Add(t.Sub(rec.Now))
	}
}

// values are the columns as pgx reads them.
type values struct {
	scope, key, operationID, token, raw, meaning, policy, credential, trace, header, body []byte
	version, generation, attempt                                                          *int64
	state                                                                                 *int16
	status                                                                                *int32
	open, allInTx, replyStarted, replyKept                                                *bool
	created, firstStarted, claimed, renewed, leaseEnd, finished, expires                  *int64
}

func (v *values) targets() []any {
	return []any{
		&v.scope, &v.key, &v.version, &v.state, &v.open, &v.generation, &v.operationID, &v.token, &v.attempt,
		&v.raw, &v.meaning, &v.policy, &v.credential, &v.trace, &v.allInTx, &v.replyStarted, &v.replyKept,
		&v.created, &v.firstStarted, &v.claimed, &v.renewed, &v.leaseEnd, &v.finished, &v.expires, &v.status, &v.header, &v.body,
	}
}

// fill puts the values of a row into r, which has its Now already.
func (v *values) fill(r *semel.Record) error {
	*r = semel.Record{
		Scope:        string(v.scope),
		Key:          string(v.key),
		State:        semel.State(*v.state), //nolint:gosec // the table checks it.
		Open:         *v.open,
		Generation:   *v.generation,
		Attempt:      *v.attempt,
		Trace:        string(v.trace),
		AllInTx:      *v.allInTx,
		ReplyStarted: *v.replyStarted,
		ReplyKept:    *v.replyKept,
		Created:      instant(v.created),
		FirstStarted: instant(v.firstStarted),
		Claimed:      instant(v.claimed),
		Renewed:      instant(v.renewed),
		LeaseEnd:     instant(v.leaseEnd),
		Finished:     instant(v.finished),
		Expires:      instant(v.expires),
		Now:          r.Now,
	}
	r.Fingerprint.Policy = string(v.policy)
	r.Reply.Status = int(*v.status)
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

// args are the arguments of insertRecord, and of updateRecord but for the last.
func (r *row) args() ([]any, error) {
	rec := &r.record
	header, err := rec.Reply.Header.MarshalText()
	if err != nil {
		return nil, err
	}
	return []any{
		[]byte(rec.Scope), []byte(rec.Key), r.version + 1, int16(rec.State), rec.Open, rec.Generation, rec.OperationID[:], rec.Token[:], rec.Attempt,
		rec.Fingerprint.Raw[:], rec.Fingerprint.Meaning[:], []byte(rec.Fingerprint.Policy), rec.Credential[:], []byte(rec.Trace), rec.AllInTx, rec.ReplyStarted, rec.ReplyKept,
		micros(rec.Created), micros(rec.FirstStarted), micros(rec.Claimed), micros(rec.Renewed), micros(rec.LeaseEnd), micros(rec.Finished), micros(rec.Expires),
		int32(rec.Reply.Status), notNull(header), notNull(rec.Reply.Body), //nolint:gosec // a status has three digits.
		(*int64)(r.lifeBase), (*int64)(r.claimBase), (*int64)(r.endBase),
	}, nil
}

// save returns the statement that writes r over the row that it was read from,
// or as a new one.
func (r *row) save(whenNew, whenOld string) (statement string, args []any, err error) {
	args, err = r.args()
	if err != nil || r.version == 0 {
		return whenNew, args, err
	}
	return whenOld, append(args, r.version), nil
}

// instant and micros turn a column into a time and back. NULL is the zero
// time.
func instant(n *int64) time.Time {
	if n == nil {
		return time.Time{}
	}
	return time.UnixMicro(*n).UTC()
}

func micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixMicro()
	return &n
}

// notNull returns b, but for nil, which pgx sends as NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
