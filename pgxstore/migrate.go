package pgxstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/migrate"
)

// Migrate brings the database of url to the schema that New wants. Several
// processes may call it at once. Errors match semel.ErrConfig, and
// migrate.ErrNewer, if a later version of Semel was here, else
// semel.ErrStoreUnavailable.
func Migrate(ctx context.Context, url string) error {
	base, err := parse(url)
	if err != nil {
		return err
	}
	cc := base.ConnConfig
	cc.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // a pooler's too
	db := stdlib.OpenDB(*cc)
	defer db.Close()
	_, err = migrate.Up(ctx, db, migrate.PostgreSQL())
	switch {
	case errors.Is(err, migrate.ErrNewer):
		return semel.NewError(semel.CodeConfig, err, "pgxstore: the database is not migrated")
	case err != nil:
		return unavailable(err)
	}
	return nil
}

// check asks the server for what New has to know.
func (s *Store) check(ctx context.Context) error {
	if err := s.readSettings(ctx); err != nil {
		return err
	}
	want, err := migrate.PostgreSQL().Latest()
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(s.own)
	defer db.Close()
	got, err := migrate.Version(ctx, db, migrate.PostgreSQL())
	switch {
	case err != nil:
		return unavailable(err)
	case got == 0:
		return configError("the database has no tables of Semel yet: migrate it first, with pgxstore.Migrate or \"semel migrate up --store …\"")
	case got < want:
		return configError("the database has schema version %d and this program needs %d: migrate it first, with pgxstore.Migrate or \"semel migrate up --store …\"", got, want)
	case got > want:
		return configError("the database has schema version %d and this program knows %d: use a newer program", got, want)
	}
	var schema string
	if err := s.one(ctx, func(r pgx.Row) error { return r.Scan(&schema) }, selectSchema); err != nil {
		return unavailable(fmt.Errorf("ask which schema the tables are in: %w", err))
	}
	s.sql = statementsIn(schema, s.hooks.ClockShift, s.class == semel.Durable)
	return nil
}

const selectSettings = `SELECT pg_catalog.current_setting('fsync'), pg_catalog.current_setting('synchronous_commit'),
	(SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout')`

// readSettings lowers the class where an acknowledged commit need not be on the
// disk, and finds out a pooler that nobody spoke of: it refuses the settings
// that a connection begins with, or keeps them to itself.
func (s *Store) readSettings(ctx context.Context) error {
	var fsync, commit, limit string
	err := s.one(ctx, func(r pgx.Row) error { return r.Scan(&fsync, &commit, &limit) }, selectSettings)
	switch {
	case hasState(err, stateProtocol):
		return semel.NewError(semel.CodeConfig, err, "pgxstore: the settings of a connection are refused: behind a pooler, set Config.TransactionPooler")
	case err != nil:
		return unavailable(err)
	case limit != milliseconds(statementLimit):
		return configError("the settings of a connection do not reach the server: behind a pooler, set Config.TransactionPooler")
	}
	if fsync == "off" || commit == "off" {
		s.class = semel.BestEffort
	}
	return nil
}
