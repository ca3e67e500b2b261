package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/spf13/pflag"
	_ "modernc.org/sqlite" // registers "sqlite"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/sqlstore"
)

// storeVariable is the environment variable that says what --store does not.
const storeVariable = "SEMEL_STORE"

// storeURLs are the addresses that --store takes, for help and errors.
const storeURLs = "sqlite:PATH, postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE"

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

// findDatabase reads --store. This is the one place that knows which store a
// URL names. Errors never hold the URL, which may hold a password.
func findDatabase(flag string) (*sqlDatabase, error) {
	if flag == "" {
		flag = os.Getenv(storeVariable)
	}
	if flag == "" {
		return nil, usagef("--store is required (or $%s): %s", storeVariable, storeURLs)
	}
	scheme, rest, ok := strings.Cut(flag, ":")
	if !ok && scheme != "memory" {
		return nil, usagef("--store has no scheme before a colon; it must be one of %s", storeURLs)
	}
	switch scheme {
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		return &sqlDatabase{"sqlite", path, func() (*sqlstore.Handles, error) { return sqlstore.OpenSQLite("sqlite", path) }}, nil
	case "postgres", "postgresql":
		return &sqlDatabase{dialect: "postgres", open: func() (*sqlstore.Handles, error) { return sqlstore.OpenPostgreSQL("pgx", flag) }}, nil
	case "mysql", "mariadb":
		dsn, err := mysqlDSN(flag)
		if err != nil {
			return nil, err
		}
		return &sqlDatabase{dialect: "mariadb", open: func() (*sqlstore.Handles, error) { return sqlstore.OpenMariaDB("mysql", dsn) }}, nil
	case "redis", "rediss", "redis-cluster":
		return nil, usagef("--store is %s:…, which this command does not reach yet; it must be one of %s", scheme, storeURLs)
	case "memory":
		return nil, usagef("--store is memory, whose keys are in the process that has it; no other process can look at them")
	}
	return nil, usagef("--store is %s:…, and there is no such store; it must be one of %s", visible(scheme), storeURLs)
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
	d, err := findDatabase(flag)
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
