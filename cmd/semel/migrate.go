package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel/migrate"
	"github.com/semel-dev/semel/sqlstore"
)

const migrateHelp = `Bring a database to the schema that this version of Semel needs, or look at it.
Several processes may do so at once, and the service may be running. Redis and
memory need nothing.

  semel migrate status --store sqlite:service.db
  semel migrate up --store sqlite:service.db
  semel migrate print --dialect postgres > semel.sql`

func newMigrate(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make and look at the tables of an SQL store",
		Long:  migrateHelp,
		Args:  cobra.ArbitraryArgs,
		RunE:  group("migrate"),
	}
	cmd.AddCommand(newMigrateUp(s), newMigrateDown(s), newMigrateStatus(s), newMigratePrint(s))
	return cmd
}

// databaseOf is the database that --store names.
func databaseOf(flag string) (*sqlDatabase, error) {
	at, err := locate(flag)
	if err != nil {
		return nil, err
	}
	if at.isRedis() {
		return nil, usagef("--store is Redis, which needs no migrations")
	}
	return at.findDatabase()
}

// withDatabase calls do with a database that is there, or that may be made.
func withDatabase(flag string, create bool, do func(h *sqlstore.Handles, set migrate.Set) error) error {
	d, err := databaseOf(flag)
	if err != nil {
		return err
	}
	open := d.openExisting
	if create {
		open = d.open
	}
	handles, err := open()
	if err != nil {
		return explained(err)
	}
	defer handles.Close()
	return explained(do(handles, d.set()))
}

// dryUp says what "up" would do.
func dryUp(ctx context.Context, s streams, flag string) error {
	sayPending := func(db *sql.DB, set migrate.Set) error {
		pending, err := migrate.Pending(ctx, db, set)
		return say(s, err, pending, "would apply", nothingToApply)
	}
	d, err := databaseOf(flag)
	if err != nil {
		return err
	}
	if !d.missing() {
		return withDatabase(flag, false, func(h *sqlstore.Handles, set migrate.Set) error { return sayPending(h.Write, set) })
	}
	if _, err := os.Stat(filepath.Dir(d.file)); err != nil {
		return fmt.Errorf("%s could not be created: %w", visible(d.file), err)
	}
	fmt.Fprintln(s.out, "would create", visible(d.file))
	empty, err := sql.Open("sqlite", ":memory:") // as the new file would be
	if err != nil {
		return err
	}
	defer empty.Close()
	return sayPending(empty, d.set())
}

func newMigrateUp(s streams) *cobra.Command {
	var store string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply every migration that is missing",
		Long: `Apply every migration that is missing, all of them or none. MariaDB commits each
statement; there the next run goes on where one was cut off. An SQLite file that is
missing is created.`,
		Example: `  semel migrate up --store sqlite:service.db
  semel migrate up --store postgres://owner@db/shop --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dryRun {
				return dryUp(cmd.Context(), s, store)
			}
			return withDatabase(store, true, func(h *sqlstore.Handles, set migrate.Set) error {
				applied, err := migrate.Up(cmd.Context(), h.Write, set)
				return say(s, err, applied, "applied", nothingToApply)
			})
		},
	}
	addStoreFlag(cmd.Flags(), &store)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be applied, and change nothing")
	return cmd
}

const nothingToApply = "nothing to apply: the schema is the one that this version needs"

// say prints a line for each migration, or that there is none.
func say(s streams, err error, names []string, what, none string) error {
	if err != nil {
		return err
	}
	if len(names) == 0 {
		fmt.Fprintln(s.out, none)
	}
	for _, name := range names {
		fmt.Fprintln(s.out, what, name)
	}
	return nil
}

func newMigrateDown(s streams) *cobra.Command {
	var store string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Undo the latest migration, and drop what its tables hold",
		Long: `Undo the latest migration. Undoing the first one drops every key and every line of
the audit log: a request that was done before would run again. Stop all services
first.`,
		Example: `  semel migrate down --store sqlite:service.db --dry-run
  semel migrate down --store sqlite:service.db --yes-drop-all-records`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(store, false, func(h *sqlstore.Handles, set migrate.Set) error {
				return down(cmd.Context(), s, h, set, dryRun, yes)
			})
		},
	}
	addStoreFlag(cmd.Flags(), &store)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be undone, and change nothing")
	cmd.Flags().BoolVar(&yes, "yes-drop-all-records", false, "do it, and lose the keys: what was done before would run again")
	return cmd
}

func down(ctx context.Context, s streams, h *sqlstore.Handles, set migrate.Set, dryRun, yes bool) error {
	const none = "nothing to undo: there are no tables of Semel"
	applied, err := migrate.Applied(ctx, h.Write, set)
	if err != nil {
		return err
	}
	latest := applied[max(len(applied)-1, 0):]
	if dryRun || len(latest) == 0 {
		return say(s, nil, latest, "would undo", none)
	}
	if !yes {
		return usagef("nothing was changed: undoing %s drops every key, and what was done would run again; "+
			"stop all services, and say --yes-drop-all-records", latest[0])
	}
	name, err := migrate.Down(ctx, h.Write, set)
	if name == "" && err == nil {
		err = errors.New("somebody else has undone it")
	}
	return say(s, err, []string{name}, "undone", none)
}

// schemaView is what "semel migrate status" prints as JSON.
type schemaView struct {
	Version int      `json:"version"`
	Latest  int      `json:"latest"`
	Applied []string `json:"applied"`
	Pending []string `json:"pending"`
}

func newMigrateStatus(s streams) *cobra.Command {
	var store string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the version of the schema, and what is missing",
		Long: `Print the version of the schema, and which migrations are missing. The exit code is
0 also where some are. With --json: version, latest, applied, pending.`,
		Example: `  semel migrate status --store sqlite:service.db
  semel migrate status --store postgres://owner@db/shop --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(store, false, func(h *sqlstore.Handles, set migrate.Set) error {
				v, err := schemaOf(cmd.Context(), h, set)
				if err != nil {
					return err
				}
				if asJSON {
					printJSON(s.out, v)
					return nil
				}
				fmt.Fprintf(s.out, "version %d of %d\n", v.Version, v.Latest)
				for _, name := range v.Applied {
					fmt.Fprintln(s.out, "applied", name)
				}
				for _, name := range v.Pending {
					fmt.Fprintln(s.out, "pending", name)
				}
				return nil
			})
		},
	}
	addStoreFlag(cmd.Flags(), &store)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func schemaOf(ctx context.Context, h *sqlstore.Handles, set migrate.Set) (v schemaView, err error) {
	if v.Applied, err = migrate.Applied(ctx, h.Write, set); err != nil {
		return v, err
	}
	if v.Pending, err = migrate.Pending(ctx, h.Write, set); err != nil {
		return v, err
	}
	v.Version, v.Latest = len(v.Applied), len(v.Applied)+len(v.Pending)
	return v, nil
}

func newMigratePrint(s streams) *cobra.Command {
	var dialect string
	var down bool
	names := slices.Sorted(maps.Keys(dialects))
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL of all migrations, for a database without Semel's tables",
		Long: `Print the SQL of all migrations, with their notes for operators, for those who apply
SQL with tools of their own. It needs no database. Afterwards the database is as
"semel migrate up" leaves it.`,
		Example: `  semel migrate print --dialect postgres > semel.sql
  semel migrate print --dialect mariadb --down`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			set, ok := dialects[dialect]
			if !ok {
				return usagef("--dialect is %q; it must be one of %s", dialect, strings.Join(names, ", "))
			}
			script := migrate.Set.UpScript
			if down {
				script = migrate.Set.DownScript
			}
			text, err := script(set())
			if err != nil {
				return err
			}
			fmt.Fprint(s.out, text)
			return nil
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", "", "`NAME` of the database: "+strings.Join(names, ", "))
	cmd.Flags().BoolVar(&down, "down", false, "print what undoes all migrations, and drops what the tables hold")
	return cmd
}
