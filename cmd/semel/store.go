package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/spf13/pflag"
	_ "modernc.org/sqlite" // registers "sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/sqlstore"
)

// storeVariable is the environment variable that says what --store does not.
const storeVariable = "SEMEL_STORE"

// storeURLs are the addresses that --store takes, for help and errors.
const storeURLs = "sqlite:PATH, postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE, redis://HOST, redis-cluster://HOST"

// addStoreFlag adds --store.
func addStoreFlag(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "store", "", "`URL` of the store: "+storeURLs+" (default: $"+storeVariable+")")
}

// sqlDatabase is where an SQL store is, and how it is reached.
type sqlDatabase struct {
	dialect string // as "semel migrate print" calls it
	file    string // SQLite's
	open    func() (*sqlstore.Handles, error)
}

// dialects are the migrations of each kind of database.
var dialects = map[string]func() migrate.Set{
	"sqlite":   migrate.SQLite,
	"postgres": migrate.PostgreSQL,
	"mariadb":  migrate.MariaDB,
}

// location is what --store says, or the environment.
type location struct{ url, scheme, rest string }

// locate reads --store. Errors never hold the URL, which may hold a password.
func locate(flag string) (location, error) {
	at := location{url: flag}
	if flag == "" {
		at.url = os.Getenv(storeVariable)
	}
	if at.url == "" {
		return at, usagef("--store is required (or $%s): %s", storeVariable, storeURLs)
	}
	var ok bool
	if at.scheme, at.rest, ok = strings.Cut(at.url, ":"); !ok && at.scheme != "memory" {
		return at, usagef("--store has no scheme before a colon; it must be one of %s", storeURLs)
	}
	return at, nil
}

// isRedis reports whether the store is redisstore's.
func (at *location) isRedis() bool {
	switch at.scheme {
	case "redis", "rediss", "redis-cluster", "rediss-cluster":
		return true
	}
	return false
}

// findDatabase returns the SQL database at a location. With openStore it is the
// one place that knows which store a URL names.
func (at *location) findDatabase() (*sqlDatabase, error) {
	switch at.scheme {
	case "sqlite":
		path := strings.TrimPrefix(at.rest, "//")
		return &sqlDatabase{"sqlite", path, func() (*sqlstore.Handles, error) { return sqlstore.OpenSQLite("sqlite", path) }}, nil
	case "postgres", "postgresql":
		return &sqlDatabase{dialect: "postgres", open: func() (*sqlstore.Handles, error) { return sqlstore.OpenPostgreSQL("pgx", at.url) }}, nil
	case "mysql", "mariadb":
		dsn, err := mysqlDSN(at.url)
		if err != nil {
			return nil, err
		}
		return &sqlDatabase{dialect: "mariadb", open: func() (*sqlstore.Handles, error) { return sqlstore.OpenMariaDB("mysql", dsn) }}, nil
	case "memory":
		return nil, usagef("--store is memory, whose keys are in the process that has it; no other process can look at them")
	}
	return nil, usagef("--store is %s:…, and there is no such store; it must be one of %s", visible(at.scheme), storeURLs)
}

// mysqlDSN is a URL as the driver wants it.
func mysqlDSN(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return "", usagef("--store is no URL of the form mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = u.Host + ":3306"
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += "?" + u.RawQuery
	}
	return dsn, nil
}

// set returns the migrations of the database.
func (d *sqlDatabase) set() migrate.Set { return dialects[d.dialect]() }

// openExisting opens the database. A file that is not there is not created.
func (d *sqlDatabase) openExisting() (*sqlstore.Handles, error) {
	if d.file != "" {
		if _, err := os.Stat(d.file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no file %s", visible(d.file))
		}
	}
	return d.open()
}

// openStore opens the store that --store names. Close ends it.
func openStore(ctx context.Context, flag string) (store semel.Store, closing func(), err error) {
	at, err := locate(flag)
	if err != nil {
		return nil, nil, err
	}
	if at.isRedis() {
		return openRedis(ctx, at.url)
	}
	d, err := at.findDatabase()
	if err != nil {
		return nil, nil, err
	}
	handles, err := d.openExisting()
	if err != nil {
		return nil, nil, err
	}
	closing = func() { handles.Close() } //nolint:errcheck // the command is done.
	store, err = sqlstore.New(ctx, handles, sqlstore.Config{})
	if err != nil {
		closing()
		if errors.Is(err, semel.ErrConfig) {
			err = fmt.Errorf("%w (see \"semel migrate status\")", err)
		}
		return nil, nil, err
	}
	return store, closing, nil
}

// openRedis opens the store that keeps its keys in Redis, under a prefix of its
// own where the URL says ?prefix=NAME. Whether the server may lose or evict
// them is the service's affair: nothing runs here.
func openRedis(ctx context.Context, text string) (semel.Store, func(), error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, nil, usagef("--store is no URL of the form redis://USER:PASSWORD@HOST:PORT")
	}
	store, err := redisstore.Open(ctx, text, redisstore.Config{
		Prefix: u.Query().Get("prefix"), AcceptLoss: true, AssumeNoEviction: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	return store, func() { store.Close() }, nil //nolint:errcheck // the command is done.
}
