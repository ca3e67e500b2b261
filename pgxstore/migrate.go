package pgxstore

import (
	"context"
	"errors"

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
		return configError("the database has no tables of Semel yet: migrate it first, with pgxstore.Migrate")
	case got < want:
		return configError("the database has schema version %d and this program needs %d: migrate it first, with pgxstore.Migrate", got, want)
	case got > want:
		return configError("the database has schema version %d and this program knows %d: use a newer program", got, want)
	}
	return s.readDurability(ctx)
}

// readDurability lowers the class where an acknowledged commit need not be on
// the disk.
func (s *Store) readDurability(ctx context.Context) error {
	var fsync, commit string
	err := s.one(ctx, func(r pgx.Row) error { return r.Scan(&fsync, &commit) },
		`SELECT current_setting('fsync'), current_setting('synchronous_commit')`)
	if err != nil {
		return unavailable(err)
	}
	if fsync == "off" || commit == "off" {
		s.class = semel.BestEffort
	}
	return nil
}
