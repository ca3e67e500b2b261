package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
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
	where   string // the database and its server, without a password
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

// findDatabase returns the SQL database at a location. It and isRedis are what
// knows which store a URL names.
func (at *location) findDatabase() (*sqlDatabase, error) {
	switch at.scheme {
	case "sqlite":
		path := strings.TrimPrefix(at.rest, "//")
		return &sqlDatabase{
			dialect: "sqlite", where: visible(path), file: path,
			open: func() (*sqlstore.Handles, error) { return sqlstore.OpenSQLite("sqlite", path) },
		}, nil
	case "postgres", "postgresql":
		where, err := postgresDatabase(at.url)
		if err != nil {
			return nil, err
		}
		return &sqlDatabase{
			dialect: "postgres", where: where,
			open: func() (*sqlstore.Handles, error) { return sqlstore.OpenPostgreSQL("pgx", at.url) },
		}, nil
	case "mysql", "mariadb":
		cfg, dsn, err := mysqlDSN(at.url)
		if err != nil {
			return nil, err
		}
		return &sqlDatabase{
			dialect: "mariadb", where: visible(cfg.DBName) + " at " + visible(cfg.Addr),
			open: func() (*sqlstore.Handles, error) { return sqlstore.OpenMariaDB("mysql", dsn) },
		}, nil
	case "memory":
		return nil, usagef("--store is memory, whose keys are in the process that has it; no other process can look at them")
	}
	return nil, usagef("--store is %s:…, and there is no such store; it must be one of %s", visible(at.scheme), storeURLs)
}

// badURL refuses a URL that cannot be read. What is wrong with it is not said:
// it may be the password.
func badURL(form string) error {
	return usagef("--store is no URL of the form %s (in a password, / is written %%2F, # %%23, ? %%3F and %% %%25)", form)
}

// postgresDatabase is the database that a URL names.
func postgresDatabase(text string) (string, error) {
	cfg, err := pgconn.ParseConfig(text)
	if err != nil {
		return "", badURL("postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	server := net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	return visible(cmp.Or(cfg.Database, cfg.User)) + " at " + visible(server), nil
}

// mysqlDSN is a URL as the driver wants it.
func mysqlDSN(text string) (cfg *mysql.Config, dsn string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, "", badURL("mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	cfg = mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = u.Host + ":3306"
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	dsn = cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += "?" + u.RawQuery
	}
	return cfg, dsn, nil
}

// set returns the migrations of the database.
func (d *sqlDatabase) set() migrate.Set { return dialects[d.dialect]() }

// missing reports whether the database is a file that is not there.
func (d *sqlDatabase) missing() bool {
	if d.file == "" {
		return false
	}
	_, err := os.Stat(d.file)
	return errors.Is(err, fs.ErrNotExist)
}

// openExisting opens the database. A file that is not there is not created.
func (d *sqlDatabase) openExisting() (*sqlstore.Handles, error) {
	if d.missing() {
		return nil, fmt.Errorf("there is no file %s", visible(d.file))
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
		return at.openRedis(ctx)
	}
	d, err := at.findDatabase()
	if err != nil {
		return nil, nil, err
	}
	handles, err := d.openExisting()
	if err != nil {
		return nil, nil, explained(err)
	}
	closing = func() { handles.Close() } //nolint:errcheck // the command is done.
	store, err = sqlstore.New(ctx, handles, sqlstore.Config{})
	if err != nil {
		closing()
		if errors.Is(err, semel.ErrConfig) {
			err = fmt.Errorf("%w (see \"semel migrate status\")", err)
		}
		return nil, nil, explained(err)
	}
	return store, closing, nil
}

// openRedis opens the store that keeps its keys in Redis, under a prefix of its
// own where the URL says ?prefix=NAME. Whether the server may lose or evict
// them is the service's affair: nothing runs here.
func (at *location) openRedis(ctx context.Context) (semel.Store, func(), error) {
	if _, err := at.redisServer(); err != nil {
		return nil, nil, err
	}
	store, err := redisstore.Open(ctx, at.url, redisstore.Config{
		Prefix: at.redisPrefix(), AcceptLoss: true, AssumeNoEviction: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, explained(err)
	}
	return store, func() { store.Close() }, nil //nolint:errcheck // the command is done.
}

// redisServer is the server that the URL names, with its database.
func (at *location) redisServer() (string, error) {
	u, err := url.Parse(at.url)
	if err != nil || u.Host == "" {
		return "", badURL("redis://USER:PASSWORD@HOST:PORT")
	}
	return visible(u.Host + u.Path), nil
}

// redisPrefix is the prefix that the URL names, or empty.
func (at *location) redisPrefix() string {
	u, err := url.Parse(at.url)
	if err != nil {
		return ""
	}
	return u.Query().Get("prefix")
}
