package service

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sqlstore"
)

// Place is where a service keeps what it writes.
type Place struct {
	// Business is the database of payments and orders. Required.
	Business *sqlstore.Handles
	// Dialect is what Business speaks. Default SQLite.
	Dialect Dialect
	// Keys is the store of the keys, where that is another one. Then the reply
	// is saved after the payment, in leased mode. Default: the keys are in
	// Business, and the reply is saved in the payment's transaction, in joined
	// mode.
	Keys semel.Store
	// KeysSystem is what Keys is, such as Redis. It comes with Keys.
	KeysSystem System
}

// System names a kind of store for people.
type System string

// Redis is a system that keeps keys and nothing else.
const Redis System = "Redis"

// metricsName is what OpenTelemetry calls the system (db.system.name).
func (s System) metricsName() string { return strings.ToLower(string(s)) }

// Dialect is the SQL of one kind of database.
type Dialect struct {
	// System is the database that speaks it.
	System System
	// numbered is whether placeholders are $1, $2 and so on.
	numbered bool
	// The types of columns: a word of ours, a text of a client's, bytes that
	// are part of a key, and bytes.
	word, text, name, bytes string
	// keep ends an INSERT that leaves a row alone which is there already.
	keep string
	// replace ends an INSERT of a setting: the last value counts.
	replace string
	// change ends an INSERT of an order: its version counts the changes.
	change string
}

// The dialects.
var (
	SQLite = Dialect{
		System: "SQLite",
		word:   "TEXT", text: "TEXT", name: "BLOB", bytes: "BLOB",
		keep:    keepOnConflict,
		replace: replaceOnConflict,
		change:  changeOnConflict,
	}
	PostgreSQL = Dialect{
		System:   "PostgreSQL",
		numbered: true,
		word:     "TEXT", text: "TEXT", name: "BYTEA", bytes: "BYTEA",
		keep:    keepOnConflict,
		replace: replaceOnConflict,
		change:  changeOnConflict,
	}
	// MariaDB's texts are compared as bytes, like everybody else's.
	MariaDB = Dialect{
		System: "MariaDB",
		word:   "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin",
		text:   "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		name:   "VARBINARY(1024)", bytes: "LONGBLOB",
		keep:    " ON DUPLICATE KEY UPDATE demo = demo",
		replace: " ON DUPLICATE KEY UPDATE value = VALUES(value)",
		// Assignments are made in their order.
		change: " ON DUPLICATE KEY UPDATE version = version + (body <> VALUES(body)), body = VALUES(body)",
	}
)

const (
	keepOnConflict    = " ON CONFLICT DO NOTHING"
	replaceOnConflict = " ON CONFLICT (demo, name) DO UPDATE SET value = excluded.value"
	changeOnConflict  = ` ON CONFLICT (demo, id) DO UPDATE
	SET version = demo_orders.version + CASE WHEN demo_orders.body = excluded.body THEN 0 ELSE 1 END, body = excluded.body`
)

// tables are the service's. Each row says to which demo it belongs, since a
// database may have several.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS demo_payments (
	demo         {word} NOT NULL,
	id           {word} NOT NULL,
	door         {word} NOT NULL,
	amount       BIGINT NOT NULL,
	currency     {word} NOT NULL,
	recipient_id {text} NOT NULL,
	charge_id    {word} NOT NULL,
	PRIMARY KEY (demo, id))`,
	`CREATE TABLE IF NOT EXISTS demo_orders (
	demo    {word} NOT NULL,
	id      {word} NOT NULL,
	version BIGINT NOT NULL,
	body    {bytes} NOT NULL,
	PRIMARY KEY (demo, id))`,
	`CREATE TABLE IF NOT EXISTS demo_naive_replies (
	demo            {word} NOT NULL,
	customer        {name} NOT NULL,
	idempotency_key {name} NOT NULL,
	status          BIGINT NOT NULL,
	location        {text} NOT NULL,
	body            {bytes} NOT NULL,
	PRIMARY KEY (demo, customer, idempotency_key))`,
	`CREATE TABLE IF NOT EXISTS demo_settings (
	demo  {word} NOT NULL,
	name  {word} NOT NULL,
	value BIGINT NOT NULL,
	PRIMARY KEY (demo, name))`,
}

// statements are what the service asks its database, in one dialect.
type statements struct {
	tables                                      []string
	pay, payOnce, payment, totals               string
	lookUp, remember                            string
	putOrder, order, deleteOrder                string
	setting, firstSetting, changeSetting, knows string
}

func (d Dialect) statements() statements {
	types := strings.NewReplacer("{word}", d.word, "{text}", d.text, "{name}", d.name, "{bytes}", d.bytes)
	s := statements{
		pay:           d.placeholders(insertPayment),
		payOnce:       d.placeholders(insertPayment + d.keep),
		payment:       d.placeholders(selectPayment),
		totals:        d.placeholders(selectTotals),
		lookUp:        d.placeholders(selectReply),
		remember:      d.placeholders(insertReply + d.keep),
		putOrder:      d.placeholders(insertOrder + d.change + " RETURNING version"),
		order:         d.placeholders(selectOrder),
		deleteOrder:   d.placeholders(deleteOrder),
		setting:       d.placeholders(selectSetting),
		firstSetting:  d.placeholders(insertSetting + d.keep),
		changeSetting: d.placeholders(insertSetting + d.replace),
		knows:         d.placeholders(countSettings),
	}
	for _, table := range tables {
		s.tables = append(s.tables, types.Replace(table))
	}
	return s
}

// placeholders numbers the question marks of a statement if the dialect wants
// that.
func (d Dialect) placeholders(statement string) string {
	for n := 1; d.numbered && strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}

// complete checks p and fills in the default.
func (p *Place) complete() error {
	switch {
	case p.Business == nil:
		return errors.New("service: Place.Business is required: the database of payments and orders")
	case p.Keys != nil && p.KeysSystem == "":
		return errors.New("service: Place.KeysSystem is required beside Place.Keys: what they are in, such as Redis")
	}
	if p.Dialect.System == "" {
		p.Dialect = SQLite
	}
	return nil
}

// Prepare makes the tables that are missing, Semel's included.
func (p Place) Prepare(ctx context.Context) error {
	if err := p.complete(); err != nil {
		return err
	}
	for _, table := range p.Dialect.statements().tables {
		_, err := p.Business.Write.ExecContext(ctx, table)
		if err != nil { // of two who make a table at once, PostgreSQL refuses one
			_, err = p.Business.Write.ExecContext(ctx, table)
		}
		if err != nil {
			return unavailable(err, "create the demo's tables")
		}
	}
	if p.Keys != nil {
		return nil
	}
	return sqlstore.Migrate(ctx, p.Business)
}

const countSettings = `SELECT count(*) FROM demo_settings WHERE demo = ?`

// Register notes that the demo of that name is here, unless it is noted: a
// service that starts beside one at work need not wait to write.
func (p Place) Register(ctx context.Context, demo string) error {
	if known, err := p.Knows(ctx, demo); known || err != nil {
		return err
	}
	_, err := p.Business.Write.ExecContext(ctx, p.Dialect.statements().firstSetting, demo, settingLease, int64(defaultLease))
	return unavailable(err, "note the demo in the database")
}

// Knows reports whether the demo of that name is here.
func (p Place) Knows(ctx context.Context, demo string) (bool, error) {
	if err := p.complete(); err != nil {
		return false, err
	}
	var n int
	err := p.Business.Read.QueryRowContext(ctx, p.Dialect.statements().knows, demo).Scan(&n)
	return n > 0, unavailable(err, "look for the demo in the database")
}

// unavailable is the error of a database that could not do what.
func unavailable(err error, what string) error {
	if err == nil {
		return nil
	}
	return semel.NewError(semel.CodeStoreUnavailable, err, "%s", what)
}

// mode is Semel's, in which a payment is made.
func (p Place) mode() semel.Mode {
	if p.Keys != nil {
		return semel.Leased
	}
	return semel.Joined
}

// records returns the store of the keys and what it is.
func (p Place) records(ctx context.Context) (semel.Store, System, error) {
	if p.Keys != nil {
		return p.Keys, p.KeysSystem, nil
	}
	s, err := sqlstore.New(ctx, p.Business, sqlstore.Config{})
	return s, p.Dialect.System, err
}
