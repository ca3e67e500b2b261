package semelclient

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/semel-dev/semel"
)

// SQLDialect says which database an SQLStore talks to.
type SQLDialect string

// The dialects.
const (
	SQLite     SQLDialect = "sqlite"
	PostgreSQL SQLDialect = "postgres"
	MariaDB    SQLDialect = "mariadb"
)

// SQLStore keeps intents in the table semel_intents of an SQL database, through
// any driver of database/sql. A hold ends by the database's clock. Intents are as
// durable as its commits: on SQLite, open it with synchronous=FULL and a busy
// timeout.
type SQLStore struct {
	db *sql.DB
	d  sqlDialect
}

var _ IntentStore = (*SQLStore)(nil)

// NewSQLStore returns a store in db, which stays the caller's. It asks the
// database nothing; Migrate makes the table. The error matches semel.ErrConfig.
func NewSQLStore(db *sql.DB, dialect SQLDialect) (*SQLStore, error) {
	d, ok := sqlDialects[dialect]
	switch {
	case db == nil:
		return nil, semel.NewError(semel.CodeConfig, nil, "semelclient: there is no database")
	case !ok:
		return nil, semel.NewError(semel.CodeConfig, nil, "semelclient: %q is no dialect", string(dialect))
	}
	return &SQLStore{db: db, d: d}, nil
}

// sqlDialect is what a database says differently from another.
type sqlDialect struct {
	now      string // microseconds since 1970
	table    string
	insert   string // of an INSERT that leaves out what is there
	conflict string // its end
	numbered bool   // placeholders are $1, $2, …
}

var sqlDialects = map[SQLDialect]sqlDialect{
	SQLite: {
		now: "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
		table: `CREATE TABLE IF NOT EXISTS semel_intents (
			intent_key BLOB NOT NULL PRIMARY KEY, token TEXT NOT NULL, held_until INTEGER NOT NULL, content BLOB NOT NULL, ending BLOB)`,
		insert: "INSERT INTO", conflict: " ON CONFLICT DO NOTHING",
	},
	PostgreSQL: {
		now: "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
		table: `CREATE TABLE IF NOT EXISTS semel_intents (
			intent_key bytea PRIMARY KEY, token text NOT NULL, held_until bigint NOT NULL, content bytea NOT NULL, ending bytea)`,
		insert: "INSERT INTO", conflict: " ON CONFLICT DO NOTHING", numbered: true,
	},
	MariaDB: {
		now: "timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))",
		table: `CREATE TABLE IF NOT EXISTS semel_intents (
			intent_key varbinary(255) PRIMARY KEY, token varchar(64) NOT NULL, held_until bigint NOT NULL,
			content longblob NOT NULL, ending longblob) ENGINE=InnoDB`,
		insert: "INSERT IGNORE INTO",
	},
}

const (
	sqlAdd      = ` semel_intents (intent_key, token, held_until, content) VALUES (?, ?, {now} + ?, ?)`
	sqlHold     = `UPDATE semel_intents SET token = ?, held_until = {now} + ? WHERE intent_key = ? AND ending IS NULL AND held_until <= {now}`
	sqlRead     = `SELECT token, content, ending FROM semel_intents WHERE intent_key = ?`
	sqlSettle   = `UPDATE semel_intents SET token = '', held_until = 0, ending = ? WHERE intent_key = ? AND token = ? AND token <> '' AND ending IS NULL`
	sqlRelease  = `UPDATE semel_intents SET token = '', held_until = 0 WHERE intent_key = ? AND token = ? AND token <> '' AND ending IS NULL`
	sqlKeys     = `SELECT intent_key FROM semel_intents WHERE intent_key > ? ORDER BY intent_key LIMIT 500`
	sqlTakeBack = `DELETE FROM semel_intents WHERE intent_key = ? AND token = ? AND ending IS NULL`
	sqlForget   = `DELETE FROM semel_intents WHERE intent_key = ?`
)

// text returns a statement in the store's dialect.
func (s *SQLStore) text(statement string) string {
	statement = strings.ReplaceAll(statement, "{now}", s.d.now)
	for n := 1; s.d.numbered && strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}

// changed runs a statement and reports whether it changed a row.
func (s *SQLStore) changed(ctx context.Context, statement string, args ...any) (bool, error) {
	result, err := s.db.ExecContext(ctx, s.text(statement), args...) //nolint:gosec // the statements are constants above.
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Migrate makes the table if it is not there.
func (s *SQLStore) Migrate(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, s.d.table); err != nil {
		return storeFailed(err, "make its table")
	}
	return nil
}

// Add implements IntentStore.
func (s *SQLStore) Add(ctx context.Context, in Intent, d time.Duration) (Hold, error) {
	if err := ctx.Err(); err != nil {
		return Hold{}, err
	}
	content, err := encodeIntent(in, nil)
	if err != nil {
		return Hold{}, err
	}
	h := Hold{Key: in.Key, Token: uuid.NewString()}
	added, err := s.add(ctx, s.d.insert+sqlAdd+s.d.conflict, []byte(in.Key), h.Token, d.Microseconds(), content)
	switch {
	case err != nil:
		return Hold{}, s.takeBack(ctx, h, err)
	case !added:
		return Hold{}, ErrIntentKnown
	}
	return h, nil
}

// add runs a statement that stores an intent. A statement that is interrupted may
// be carried out all the same, later than anything that undoes it: so the end of
// ctx does not interrupt it, for as long as a store is waited for.
func (s *SQLStore) add(ctx context.Context, statement string, args ...any) (bool, error) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(storeTimeout, cancel) })
	defer stop()
	return s.changed(whole, statement, args...)
}

// takeBack removes what an Add may have stored that failed, and nobody else's.
func (s *SQLStore) takeBack(ctx context.Context, h Hold, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	gone, err := s.changed(ctx, sqlTakeBack, []byte(h.Key), h.Token)
	if err != nil || !gone {
		return mayBeStored(h.Key, errors.Join(why, err)) // it may be on its way
	}
	return why
}

// Hold implements IntentStore.
func (s *SQLStore) Hold(ctx context.Context, key string, d time.Duration) (Entry, error) {
	token := uuid.NewString()
	held, err := s.changed(ctx, sqlHold, token, d.Microseconds(), []byte(key))
	if err != nil {
		return Entry{}, err
	}
	entry, holder, err := s.read(ctx, key)
	switch {
	case err != nil || entry.Settlement != nil:
		return entry, err
	case !held || holder != token:
		return Entry{}, ErrIntentHeld
	}
	entry.Hold = Hold{Key: key, Token: token}
	return entry, nil
}

func (s *SQLStore) read(ctx context.Context, key string) (entry Entry, holder string, err error) {
	var content, ending []byte
	err = s.db.QueryRowContext(ctx, s.text(sqlRead), []byte(key)).Scan(&holder, &content, &ending) //nolint:gosec // a constant in a dialect.
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Entry{}, "", ErrIntentMissing
	case err != nil:
		return Entry{}, "", err
	}
	entry, err = decodeIntent(content)
	if err == nil && ending != nil {
		entry.Settlement = new(Settlement)
		err = json.Unmarshal(ending, entry.Settlement)
	}
	if err == nil && entry.Intent.Key != key {
		err = errors.New("it is of another key")
	}
	if err != nil {
		return Entry{}, "", semel.NewError(CodeIntentDamaged, err, "the row of %s is not as it was written", key)
	}
	return entry, holder, nil
}

// Settle implements IntentStore.
func (s *SQLStore) Settle(ctx context.Context, h Hold, settlement Settlement) error {
	ending, err := json.Marshal(settlement)
	if err != nil {
		return err
	}
	return s.ifHeld(s.changed(ctx, sqlSettle, ending, []byte(h.Key), h.Token))
}

func (*SQLStore) ifHeld(changed bool, err error) error {
	if err == nil && !changed {
		return ErrIntentHeld
	}
	return err
}

// Release implements IntentStore.
func (s *SQLStore) Release(ctx context.Context, h Hold) error {
	_, err := s.changed(ctx, sqlRelease, []byte(h.Key), h.Token)
	return err
}

// Forget implements IntentStore.
func (s *SQLStore) Forget(ctx context.Context, key string) error {
	_, err := s.changed(ctx, sqlForget, []byte(key))
	return err
}

// Keys implements IntentStore.
func (s *SQLStore) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := []byte{}; ; {
			page, err := s.page(ctx, after)
			if err != nil {
				yield("", fmt.Errorf("its keys cannot be read: %w", err))
				return
			}
			for _, key := range page {
				if !yield(string(key), nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			after = page[len(page)-1]
		}
	}
}

// page returns the next keys, so that no rows are open while the caller works.
func (s *SQLStore) page(ctx context.Context, after []byte) ([][]byte, error) {
	rows, err := s.db.QueryContext(ctx, s.text(sqlKeys), after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page [][]byte
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		page = append(page, key)
	}
	return page, rows.Err()
}
