//go:build !race

package handover

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/semelhttp"
	"github.com/semel-dev/semel/sqlstore"
)

func TestMain(m *testing.M) { os.Exit(services.Main(m)) }

// server is a database with the store in it.
type server struct {
	open   func(t *testing.T) *sqlstore.Handles
	table  string // makes that of the orders
	insert string
	// whoAmI and kill break a connection; without them it is no server.
	whoAmI, kill string
	// oneWriter says that the claim would wait for a transaction that was begun
	// before it.
	oneWriter bool
	// aborts says that after a failed statement only a savepoint helps.
	aborts bool

	gorm func(*sql.DB) gorm.Dialector // nil: not tried
	bun  func() schema.Dialect
	ent  string
}

var servers = map[string]server{
	"PostgreSQL": {
		open: func(t *testing.T) *sqlstore.Handles {
			h, err := sqlstore.OpenPostgreSQL("pgx", services.SharedPostgres(t).NewDatabase(t))
			assert.NoError(t, err)
			return h
		},
		table:  text("testdata/sqlc/schema.sql"),
		insert: "INSERT INTO orders (item) VALUES ($1) RETURNING id",
		whoAmI: "SELECT pg_backend_pid()",
		kill:   "SELECT pg_terminate_backend($1)",
		aborts: true,
		gorm:   func(db *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: db}) },
		bun:    func() schema.Dialect { return pgdialect.New() },
		ent:    "postgres",
	},
	"MariaDB": {
		open: func(t *testing.T) *sqlstore.Handles {
			h, err := sqlstore.OpenMariaDB("mysql", services.SharedMariaDB(t).NewDatabase(t))
			assert.NoError(t, err)
			return h
		},
		table:  "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(200) NOT NULL UNIQUE, order_parts BIGINT REFERENCES orders (id))",
		insert: "INSERT INTO orders (item) VALUES (?) RETURNING id",
		whoAmI: "SELECT connection_id()",
		kill:   "KILL ?",
		gorm:   func(db *sql.DB) gorm.Dialector { return mysql.New(mysql.Config{Conn: db}) },
		bun:    func() schema.Dialect { return mysqldialect.New() },
		ent:    "mysql",
	},
	"SQLite": {
		open: func(t *testing.T) *sqlstore.Handles {
			h, err := sqlstore.OpenSQLite("sqlite", filepath.Join(t.TempDir(), "shop.db"))
			assert.NoError(t, err)
			return h
		},
		table:     "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL UNIQUE, order_parts INTEGER REFERENCES orders)",
		insert:    "INSERT INTO orders (item) VALUES (?) RETURNING id",
		oneWriter: true,
		bun:       func() schema.Dialect { return sqlitedialect.New() },
		ent:       "sqlite3",
	},
}

// text is that of a file beside this one.
func text(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error() // which is no SQL
	}
	return string(b)
}

// placing writes an order in a transaction of its caller's own.
type placing func(ctx context.Context, call semel.Call, item string) (semel.Result, error)

// library is a way to write.
type library struct {
	server
	guard *semel.Guard
	mode  semel.Mode
	db    *sql.DB // past the library

	place    func(ctx context.Context, item string) (id int64, err error)
	withGift func(ctx context.Context, item, gift string) error // nil: it has no way of its own
	own      placing                                            // nil: as database/sql
	ask      func(ctx context.Context) (backend int64, err error)
}

// taken is an item that nobody can order any more.
const taken = "the last lamp"

// prepare makes the tables of a new database, and the store.
func (s server) prepare(t *testing.T) (*sqlstore.Handles, *semel.Guard) {
	t.Helper()
	h := s.open(t)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	_, err := h.Write.ExecContext(t.Context(), s.table)
	assert.NoError(t, err)
	_, err = h.Write.ExecContext(t.Context(), strings.Replace(s.insert, " RETURNING id", "", 1), taken)
	assert.NoError(t, err)
	store, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	return h, guardOf(t, store)
}

func guardOf(t *testing.T, store semel.Store) *semel.Guard {
	t.Helper()
	guard, err := semel.New(store, semel.Resume(semel.Forever), semel.Config{})
	assert.NoError(t, err)
	return guard
}

// libraries returns those that are tried on the server, in a new database.
func (s server) libraries(t *testing.T) map[string]library {
	t.Helper()
	h, guard := s.prepare(t)
	joins, err := semel.Bind[*sql.Tx](guard)
	assert.NoError(t, err)
	base := library{server: s, guard: guard, mode: semel.Joined, db: h.Write, ask: func(ctx context.Context) (id int64, err error) {
		tx, err := sqlstore.Tx(ctx)
		if err == nil {
			err = tx.QueryRowContext(ctx, s.whoAmI).Scan(&id)
		}
		return id, err
	}}
	all := make(map[string]library)
	add := func(name string, l library) {
		l.server, l.guard, l.mode, l.db, l.ask = base.server, base.guard, base.mode, base.db, base.ask
		if s.oneWriter {
			l.own = nil
		}
		all[name] = l
	}

	service, shop := &sqlService{db: h.Write, joins: joins}, sqlShop{s.insert}
	add("database_sql", library{place: shop.place, withGift: shop.placeWithGift, own: service.place(s.insert)})
	bunDB := bun.NewDB(h.Write, s.bun())
	add("bun", library{place: bunShop{bunDB}.place, withGift: bunShop{bunDB}.placeWithGift, own: (&bunService{bunDB, joins}).place})
	add("ent", library{place: entShop{s.ent}.place, withGift: entShop{s.ent}.placeWithGift, own: (&entService{*service, s.ent}).place})
	if s.gorm != nil {
		db, err := gorm.Open(s.gorm(h.Write), &gorm.Config{Logger: logger.Discard})
		assert.NoError(t, err)
		add("GORM", library{place: gormShop{db}.place, withGift: gormShop{db}.placeWithGift, own: (&gormService{db, joins}).place})
		cached, err := gorm.Open(s.gorm(h.Write), &gorm.Config{Logger: logger.Discard, PrepareStmt: true})
		assert.NoError(t, err)
		add("GORM with PrepareStmt", library{place: gormShop{cached}.place, withGift: gormShop{cached}.placeWithGift, own: (&gormService{cached, joins}).place})
	}
	if s.aborts {
		add("sqlc", library{place: placeWithSqlc, withGift: placeGiftWithSqlc, own: service.placeWithSqlc})
	}
	return all
}

// pgxLibraries returns those over pgx, in a new database.
func pgxLibraries(t *testing.T) map[string]library {
	t.Helper()
	s := servers["PostgreSQL"]
	url := services.SharedPostgres(t).NewDatabase(t)
	s.open = func(t *testing.T) *sqlstore.Handles {
		h, err := sqlstore.OpenPostgreSQL("pgx", url)
		assert.NoError(t, err)
		return h
	}
	h, _ := s.prepare(t)
	store, err := pgxstore.Open(t.Context(), url, pgxstore.Config{})
	assert.NoError(t, err)
	t.Cleanup(store.Close)
	base := library{server: s, guard: guardOf(t, store), db: h.Write, ask: func(ctx context.Context) (id int64, err error) {
		tx, err := pgxstore.Tx(ctx)
		if err == nil {
			err = tx.QueryRow(ctx, s.whoAmI).Scan(&id)
		}
		return id, err
	}}
	all := make(map[string]library)
	for name, mode := range map[string]semel.Mode{"joined": semel.Joined, "atomic": semel.Atomic} {
		l := base
		l.mode = mode
		l.place, l.withGift = placeWithPgx, placeGiftWithPgx
		all["pgx, "+name] = l
		l.place, l.withGift = placeWithSqlcOnPgx, nil
		all["sqlc for pgx, "+name] = l
	}
	return all
}

// send sends one request under a key to a handler behind Semel, and returns the
// answer. A panic is the handler's own.
func (l library) send(t *testing.T, key string, handler http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	once, err := semelhttp.New(l.guard, func(*http.Request) (string, error) { return "customer:1", nil }, semelhttp.Config{})
	assert.NoError(t, err)
	route := semelhttp.Route{Name: "orders", Mode: l.mode, AllInTx: l.mode == semel.Joined}
	protected, err := once.Protect(handler, route)
	assert.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(key))
	r.Header.Set("Idempotency-Key", strconv.Quote(key))
	w := httptest.NewRecorder()
	func() {
		defer func() { recover() }() //nolint:errcheck // net/http does the same.
		protected.ServeHTTP(w, r)
	}()
	return w
}

// orders counts the orders of an item.
func (l library) orders(t *testing.T, item string) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM orders WHERE item = ?"
	if l.aborts {
		query = "SELECT count(*) FROM orders WHERE item = $1"
	}
	assert.NoError(t, l.db.QueryRowContext(t.Context(), query, item).Scan(&n))
	return n
}
