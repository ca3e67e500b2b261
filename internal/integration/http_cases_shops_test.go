package integration

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/sqlstore"
)

// business is a store with the business of a shop beside it.
type business interface {
	semel.Store

	// sell adds one row of the business: in the transaction of ctx, or by
	// itself in leased mode.
	sell(ctx context.Context, mode semel.Mode, key string) error
}

// shopStore is a business with what a test wants to know and do about it.
type shopStore interface {
	business
	semel.Lister

	// rows counts the business rows of each key.
	rows(t testing.TB) map[string]int
	// advance moves the store's clock, for every process that has it open.
	advance(t testing.TB, d time.Duration)
	// stall keeps whoever writes a record waiting.
	stall(t testing.TB) (resume func())
	// again opens the same records, as another process does, through a cable
	// unless that is nil.
	again(t testing.TB, by *cable) shopStore
	// address is what shopKind.open opens it by.
	address() string
}

// shopKind is a kind of store that shops keep their records and rows in.
type shopKind struct {
	name string
	// fresh returns a store that is new.
	fresh func(t testing.TB) shopStore
	// open opens a store in a process of its own, until that ends.
	open func(ctx context.Context, address string) (business, error)
	// server is where the store's is; nil where there is none.
	server func(t testing.TB) (addr string)
}

// emptiedShops are open stores of which tests have left nothing: to make a
// database, and to open it, takes longer than most of them.
var emptiedShops emptied[shopStore]

// empty returns a store without a record for t, which later tests of whole may
// have.
func (k *shopKind) empty(whole, t testing.TB) shopStore {
	t.Helper()
	s, ok := emptiedShops.take(whole, k.name)
	if !ok {
		s = k.fresh(whole)
	}
	if reusable, ok := s.(interface{ clear(t testing.TB) }); ok {
		t.Cleanup(func() {
			if !t.Failed() {
				reusable.clear(t)
				emptiedShops.put(whole, k.name, s)
			}
		})
	}
	return s
}

// shopWay is a kind of store and the mode that it is used in.
type shopWay struct {
	kind *shopKind
	mode semel.Mode
	// raced ways are tried under the race detector too: see held.
	raced bool

	whole testing.TB
}

func (on shopWay) String() string { return on.kind.name + ", " + on.mode.String() }

var (
	onSQLite   = &shopKind{"SQLite", newSQLiteShop, openSQLiteShop, nil}
	onPgx      = &shopKind{"PostgreSQL by pgx", freshPgxShop, openPgxShop, postgresAddr}
	onPostgres = sqlShops("PostgreSQL", postgresAddr)
	onMariaDB  = sqlShops("MariaDB", mariadbAddr)
	onRedis    = &shopKind{"Redis", newRedisShop, openRedisShop, redisAddr}
)

func postgresAddr(t testing.TB) string { t.Helper(); return services.SharedPostgres(t).Addr() }
func mariadbAddr(t testing.TB) string  { t.Helper(); return services.SharedMariaDB(t).Addr() }
func redisAddr(t testing.TB) string    { t.Helper(); return services.SharedRedis(t).Addr() }

// shopWays are all kinds, each in every mode that it has.
var shopWays = []shopWay{
	{kind: onSQLite, mode: semel.Leased},
	{kind: onSQLite, mode: semel.Joined, raced: true},
	{kind: onPgx, mode: semel.Leased},
	{kind: onPgx, mode: semel.Joined},
	{kind: onPgx, mode: semel.Atomic, raced: true},
	{kind: onPostgres, mode: semel.Leased},
	{kind: onPostgres, mode: semel.Joined},
	{kind: onMariaDB, mode: semel.Leased},
	{kind: onMariaDB, mode: semel.Joined, raced: true},
	{kind: onRedis, mode: semel.Leased, raced: true},
}

// Processes find their kind by its name.
const kindVariable = "SEMEL_INTEGRATION_KIND"

func openShopStore() (business, semel.Mode, error) {
	for _, on := range shopWays {
		if on.String() == os.Getenv(kindVariable) {
			store, err := on.kind.open(context.Background(), os.Getenv(pathVariable))
			return store, on.mode, err
		}
	}
	return nil, 0, fmt.Errorf("no kind of store %q", os.Getenv(kindVariable))
}

// countedRows reads rows of a key and a number.
func countedRows(t testing.TB, db *sql.DB, query string) map[string]int {
	t.Helper()
	found, err := db.Query(query)
	assert.NoError(t, err, query)
	defer found.Close()
	rows := map[string]int{}
	for found.Next() {
		var key string
		var n int
		assert.NoError(t, found.Scan(&key, &n))
		rows[key] = n
	}
	assert.NoError(t, found.Err())
	return rows
}

// sellIn adds a row through the transaction of ctx, or the handle in leased
// mode.
func sellIn(ctx context.Context, mode semel.Mode, db *sql.DB, insert, key string) error {
	if mode == semel.Leased {
		_, err := db.ExecContext(ctx, insert, key)
		return err
	}
	tx, err := sqlstore.Tx(ctx)
	if err == nil {
		_, err = tx.ExecContext(ctx, insert, key)
	}
	return err
}

type sqliteShop struct{ *sqliteStore }

func newSQLiteShop(t testing.TB) shopStore { return sqliteShop{newSQLite(t)} }

func openSQLiteShop(ctx context.Context, address string) (business, error) {
	s, err := openSQLite(ctx, "sqlite", address)
	return sqliteShop{s}, err
}

func (s sqliteShop) sell(ctx context.Context, mode semel.Mode, key string) error {
	return sellIn(ctx, mode, s.handles.Write, insertPayment, key)
}

func (s sqliteShop) rows(t testing.TB) map[string]int {
	t.Helper()
	return countedRows(t, s.handles.Read, "SELECT key, count(*) FROM payments GROUP BY key")
}

func (s sqliteShop) advance(t testing.TB, d time.Duration) {
	t.Helper()
	assert.NoError(t, s.clock.Advance(d))
}

func (s sqliteShop) stall(t testing.TB) (resume func()) { t.Helper(); return stall(t, s.sqliteStore) }

func (s sqliteShop) again(t testing.TB, _ *cable) shopStore {
	t.Helper()
	other, err := openSQLite(t.Context(), "sqlite", s.path)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, other.handles.Close()) })
	return sqliteShop{other}
}

func (s sqliteShop) address() string { return s.path }

// sqlShop is a shop on a server by database/sql.
type sqlShop struct{ *sqlStore }

func sqlShops(way string, server func(testing.TB) string) *shopKind {
	return &shopKind{
		name:  way,
		fresh: func(t testing.TB) shopStore { return sqlShop{newSQL(t, way)} },
		open: func(ctx context.Context, address string) (business, error) {
			s, err := openSQL(ctx, way, address)
			return sqlShop{s}, err
		},
		server: server,
	}
}

func (s sqlShop) sell(ctx context.Context, mode semel.Mode, key string) error {
	return sellIn(ctx, mode, s.handles.Write, s.server.insert, key)
}

func (s sqlShop) rows(t testing.TB) map[string]int {
	t.Helper()
	return countedRows(t, s.test, "SELECT payer, count(*) FROM payments GROUP BY payer")
}

func (s sqlShop) again(t testing.TB, by *cable) shopStore {
	t.Helper()
	return sqlShop{sqlDatabase{dsn: by.through(s.dsn), direct: s.dsn}.store(t, s.way)}
}

func (s sqlShop) address() string { return s.dsn }

// pgxShop is a shop on PostgreSQL by pgx.
type pgxShop struct {
	*pgxStore

	beside *sql.DB // the business of leased mode
}

func freshPgxShop(t testing.TB) shopStore {
	t.Helper()
	return newPgxShop(t, newPgx(t, pgxConfig{}))
}

func newPgxShop(t testing.TB, s *pgxStore) shopStore {
	t.Helper()
	db, err := sql.Open("pgx", s.url)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return pgxShop{s, db}
}

func openPgxShop(ctx context.Context, address string) (business, error) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return nil, err
	}
	s, err := pgxstore.Open(ctx, address, pgxstore.Config{Hooks: pgxHooks})
	return pgxShop{&pgxStore{Store: s, url: address}, db}, err
}

func (s pgxShop) sell(ctx context.Context, mode semel.Mode, key string) error {
	if mode == semel.Leased {
		_, err := s.beside.ExecContext(ctx, pgxPay, key)
		return err
	}
	tx, err := pgxstore.Tx(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, pgxPay, key)
	}
	return err
}

func (s pgxShop) rows(t testing.TB) map[string]int {
	t.Helper()
	return countedRows(t, s.beside, "SELECT key, count(*) FROM payments GROUP BY key")
}

func (s pgxShop) again(t testing.TB, by *cable) shopStore {
	t.Helper()
	other := openPgx(t, services.SharedPostgres(t), s.url, pgxConfig{})
	if by != nil {
		other.reopen(t, by, "")
	}
	return newPgxShop(t, other)
}

func (s pgxShop) address() string { return s.url }

// redisShop keeps its rows in a list of the same server.
type redisShop struct{ *redisStore }

func newRedisShop(t testing.TB) shopStore {
	t.Helper()
	return redisShop{newRedis(t, services.SharedRedis(t).URL())}
}

func openRedisShop(ctx context.Context, address string) (business, error) {
	url, prefix, _ := strings.Cut(address, " ")
	s := &redisStore{url: url, prefix: prefix, gate: &gate{}}
	var err error
	if s.client, err = newRedisClient(url, s.gate); err == nil {
		s.Store, err = redisstore.New(ctx, s.client, s.config())
	}
	return redisShop{s}, err
}

func (s redisShop) sell(ctx context.Context, _ semel.Mode, key string) error {
	return s.client.Do(ctx, s.client.B().Rpush().Key(s.prefix+" rows").Element(key).Build()).Error()
}

func (s redisShop) rows(t testing.TB) map[string]int {
	t.Helper()
	admin := s.admin(t)
	all, err := admin.Do(context.Background(), admin.B().Lrange().Key(s.prefix+" rows").Start(0).Stop(-1).Build()).AsStrSlice()
	assert.NoError(t, err)
	rows := map[string]int{}
	for _, key := range all {
		rows[key]++
	}
	return rows
}

func (s redisShop) stall(testing.TB) (resume func()) { return s.redisStore.stall() }

func (s redisShop) again(t testing.TB, by *cable) shopStore {
	t.Helper()
	return redisShop{redisAt(t, by.through(s.url), s.prefix)}
}

func (s redisShop) address() string { return s.url + " " + s.prefix }
