package load

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/sqlstore"
)

// effect is what a payment does: a row in the store's database, a line in the
// journal outside it, and the reply.
type effect struct {
	Operation string `json:"operation"`
	Account   string `json:"account"`
	Key       string `json:"key"`
	Amount    int64  `json:"amount"`
	Receipt   string `json:"receipt"` // drawn by the execution: another one has another
}

// Nothing keeps an operation from having two effects but Semel.
const createEffects = `CREATE TABLE effects (operation VARCHAR(40) NOT NULL, account VARCHAR(40) NOT NULL, pay_key VARCHAR(255) NOT NULL,
	amount BIGINT NOT NULL, receipt VARCHAR(40) NOT NULL)`

const (
	insertEffect         = `INSERT INTO effects (operation, account, pay_key, amount, receipt) VALUES (?, ?, ?, ?, ?)`
	insertEffectNumbered = `INSERT INTO effects (operation, account, pay_key, amount, receipt) VALUES ($1, $2, $3, $4, $5)`
	selectEffects        = `SELECT operation, account, pay_key, amount, receipt FROM effects`
)

func (e *effect) args() []any { return []any{e.Operation, e.Account, e.Key, e.Amount, e.Receipt} }

// backend is a store that is open, with the business data beside it.
type backend struct {
	semel.Store

	// book writes the effect in the transaction of the work. It is nil where
	// the store has none.
	book  func(ctx context.Context, e *effect) error
	close func()
}

// technology is a way to keep keys.
type technology struct {
	migrate func(ctx context.Context, dsn string) error
	open    func(ctx context.Context, dsn string, connections int) (*backend, error)
	driver  string // of database/sql, for the table of effects; empty where there is none
	// connected asks the server how many connections it has. It is empty where
	// that says nothing.
	connected string
}

const (
	postgresConnected = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'semel'`
	mariadbConnected  = `SELECT count(*) - 1 FROM information_schema.processlist WHERE db = database()`
)

var technologies = map[string]technology{
	"pgxstore":   {migrate: pgxstore.Migrate, open: openPgx, driver: "pgx", connected: postgresConnected},
	"PostgreSQL": overSQL("pgx", sqlstore.OpenPostgreSQL, insertEffectNumbered, ""),
	"MariaDB":    overSQL("mysql", sqlstore.OpenMariaDB, insertEffect, mariadbConnected),
	"SQLite":     overSQL("sqlite", sqlstore.OpenSQLite, insertEffect, ""),
	"Redis":      {open: openRedis},
}

// openPgx opens a store that keeps all its connections, used or not.
func openPgx(ctx context.Context, dsn string, connections int) (*backend, error) {
	own := max(2, connections/4)
	s, err := pgxstore.Open(ctx, fmt.Sprintf("%s&pool_min_conns=%d", dsn, connections), pgxstore.Config{MaxConns: int32(own), MaxTxConns: int32(connections - own)})
	if err != nil {
		return nil, err
	}
	return &backend{Store: s, close: s.Close, book: func(ctx context.Context, e *effect) error {
		tx, err := pgxstore.Tx(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, insertEffectNumbered, e.args()...)
		return err
	}}, nil
}

// ownConnections are those that sqlstore has for itself on a server.
const ownConnections = 8

// overSQL is a database by database/sql.
func overSQL(driver string, open func(driver, dsn string) (*sqlstore.Handles, error), insert, connected string) technology {
	return technology{
		driver:    driver,
		connected: connected,
		migrate: func(ctx context.Context, dsn string) error {
			h, err := open(driver, dsn)
			if err != nil {
				return err
			}
			defer h.Close()
			return sqlstore.Migrate(ctx, h)
		},
		open: func(ctx context.Context, dsn string, connections int) (*backend, error) {
			h, err := open(driver, dsn)
			if err != nil {
				return nil, err
			}
			if h.Read == h.Write { // SQLite has one writer
				h.Write.SetMaxOpenConns(connections - ownConnections)
				h.Write.SetMaxIdleConns(connections - ownConnections)
			}
			s, err := sqlstore.New(ctx, h, sqlstore.Config{})
			if err != nil {
				h.Close()
				return nil, err
			}
			return &backend{Store: s, close: func() { h.Close() }, book: func(ctx context.Context, e *effect) error {
				tx, err := sqlstore.Tx(ctx)
				if err != nil {
					return err
				}
				_, err = tx.ExecContext(ctx, insert, e.args()...)
				return err
			}}, nil
		},
	}
}

func openRedis(ctx context.Context, dsn string, _ int) (*backend, error) {
	// Nothing fails over here.
	s, err := redisstore.Open(ctx, dsn, redisstore.Config{AcceptLoss: true, Logger: unheard})
	if err != nil {
		return nil, err
	}
	return &backend{Store: s, close: func() { s.Close() }}, nil
}

// prepare makes the tables in an empty database.
func (t technology) prepare(ctx context.Context, dsn string) error {
	if t.migrate == nil {
		return nil
	}
	if err := t.migrate(ctx, dsn); err != nil {
		return err
	}
	db, err := sql.Open(t.driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, createEffects)
	return err
}

// count counts the connections to the server.
func (t technology) count(ctx context.Context, dsn string, into *int) error {
	if t.connected == "" {
		return nil
	}
	db, err := sql.Open(t.driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.QueryRowContext(ctx, t.connected).Scan(into)
}

// rows reads the table of effects.
func (t technology) rows(ctx context.Context, dsn string) ([]effect, error) {
	db, err := sql.Open(t.driver, dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := db.QueryContext(ctx, selectEffects)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var all []effect
	for found.Next() {
		var e effect
		if err := found.Scan(&e.Operation, &e.Account, &e.Key, &e.Amount, &e.Receipt); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, found.Err()
}

// openRecords lists the records that have no known end.
func (b *backend) openRecords(ctx context.Context) ([]semel.Record, error) {
	lister, ok := semel.As[semel.Lister](b.Store)
	if !ok {
		return nil, fmt.Errorf("%T lists no records", b.Store)
	}
	p := semel.ListParams{States: []semel.State{semel.StateRunning, semel.StateUnknown}, Limit: 1000}
	var all []semel.Record
	for {
		page, err := lister.List(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < p.Limit {
			return all, nil
		}
		p.After = page[len(page)-1].Position()
	}
}

// modeOf returns the mode of that name; leased is the one that needs no transaction.
func modeOf(name string) semel.Mode {
	for _, m := range []semel.Mode{semel.Joined, semel.Atomic} {
		if strings.EqualFold(name, m.String()) {
			return m
		}
	}
	return semel.Leased
}
