package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// The usual case of each call in one statement, where a transaction would cost
// a round trip for each of its own: a key that is new, a claim that runs, is
// its holder's, and left nothing open. What comes of it the transitions of the
// root package say, applied to such a record at the time zero; the statement
// adds the time that it is. Every other case takes the plain way.

// zero is the time at which the transitions are applied.
var zero = time.UnixMicro(0).UTC()

// claimedColumns are the values of a new record: placeholders, and the times
// counted from the statement's.
func claimedColumns() string {
	times := []string{"created", "first_started", "claimed", "renewed", "lease_end", "finished", "expires"}
	values := strings.Split(columns, ",")
	for i, name := range values {
		values[i] = "?"
		for _, t := range times {
			if strings.TrimSpace(name) == t {
				values[i] = "c.now + ?"
			}
		}
	}
	return strings.Join(values, ", ")
}

// execer is a *sql.Conn or a *sql.Tx.
type execer interface {
	queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// alone runs do on the store's own connections, in a transaction of its own or,
// where that needs none, without.
func (s *Store) alone(ctx context.Context, do func(q execer) error) error {
	if s.dialect.limits == "" {
		return s.again(ctx, func(conn *sql.Conn) error { return do(conn) })
	}
	return s.write(ctx, func(tx *sql.Tx) (bool, error) { return true, do(tx) })
}

// tooLong is how old a claim may be when it is returned. One that waited longer
// for a rival's transaction, after its time was taken, is renewed first: a part
// of its lease is over.
const tooLong = time.Second

// beginAlone claims a new key. Otherwise it returns the record there is, and no
// outcome.
func (s *Store) beginAlone(ctx context.Context, p semel.BeginParams) (seen row, res semel.BeginResult, err error) {
	fresh, read := false, s.sql.claim == "" || p.Force != nil
	if !read {
		err = s.alone(ctx, func(q execer) (err error) {
			seen, fresh, res, err = s.claimOn(ctx, q, p)
			return err
		})
		read = errors.Is(err, sql.ErrNoRows) // MariaDB found a record, or a rival has inserted it since
	}
	if read {
		seen, err = s.read(ctx, s.handles.ownRead, s.sql.read, p.Scope, p.Key)
	}
	if err != nil {
		return row{}, semel.BeginResult{}, unavailable(err)
	}
	if !fresh || seen.record.AttemptAge() > tooLong {
		return seen, semel.BeginResult{}, nil
	}
	return seen, res, nil
}

// claimOn inserts the record of a new key and returns it, with what Begin says
// of it; else the record that is there. It is sql.ErrNoRows if the statement
// has seen neither.
func (s *Store) claimOn(ctx context.Context, q queryer, p semel.BeginParams) (seen row, fresh bool, res semel.BeginResult, err error) {
	made := row{version: 1, record: semel.Record{Now: zero}}
	res, _ = made.record.Begin(p)
	args, err := made.args()
	if err != nil {
		return seen, false, res, err
	}
	args = append(args, []byte(p.Scope), []byte(p.Key))
	seen, err = scan(q.QueryRowContext(ctx, s.sql.claim, args...).Scan, &fresh)
	res.Record = seen.record
	return seen, fresh, res, err
}

// running is the record of c in the usual case, as far as the transitions look
// at it.
func running(c semel.Claim) row {
	return row{record: semel.Record{State: semel.StateRunning, Token: c.Token, Attempt: c.Attempt, Now: zero}}
}

// extendAlone renews the lease of a claim that runs. Where it does not, there
// is no status.
func (s *Store) extendAlone(ctx context.Context, c semel.Claim, p semel.ExtendParams) (semel.Held, error) {
	if s.sql.extend == "" {
		return semel.Held{}, nil
	}
	r := running(c)
	held, _ := r.record.Extend(c, p)
	var done bool
	err := s.alone(ctx, func(q execer) (err error) {
		done, err = wroteOne(q.ExecContext(ctx, s.sql.extend, micros(r.record.LeaseEnd), r.record.ReplyStarted,
			[]byte(c.Scope), []byte(c.Key), c.Token[:], c.Attempt))
		return err
	})
	if err != nil || !done {
		return semel.Held{}, err
	}
	return held, nil
}

// finishAlone ends a claim that runs. Where it does not, there is no status.
func (s *Store) finishAlone(ctx context.Context, c semel.Claim, p semel.FinishParams) (held semel.Held, err error) {
	if s.sql.finish == "" {
		return semel.Held{}, nil
	}
	err = s.alone(ctx, func(q execer) error {
		held, err = s.finishOn(ctx, q, c, p)
		return err
	})
	return held, err
}

// finishOn is finishAlone in a transaction that may be the business's.
func (s *Store) finishOn(ctx context.Context, q execer, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	r := running(c)
	held, changed := r.record.Finish(c, p)
	if !changed || p.Settlement != nil {
		return semel.Held{}, nil
	}
	header, err := r.record.Reply.Header.MarshalText()
	if err != nil {
		return semel.Held{}, err
	}
	done, err := wroteOne(q.ExecContext(ctx, s.sql.finish, int64(r.record.State), r.record.ReplyKept,
		r.record.Reply.Status, notNull(header), notNull(r.record.Reply.Body), micros(r.record.Expires),
		[]byte(c.Scope), []byte(c.Key), c.Token[:], c.Attempt))
	if err != nil || !done {
		return semel.Held{}, err
	}
	return held, nil
}

func wroteOne(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}
