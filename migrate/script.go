package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Pending returns the names of the migrations that Up would apply, in order.
// It changes nothing.
func Pending(ctx context.Context, db *sql.DB, s Set) ([]string, error) {
	all, version, err := s.applied(ctx, db)
	if err != nil {
		return nil, err
	}
	return namesOf(all[version:]), nil
}

// Applied returns the names of the migrations that the database has, in order.
// Down would undo the last of them. It changes nothing.
func Applied(ctx context.Context, db *sql.DB, s Set) ([]string, error) {
	all, version, err := s.applied(ctx, db)
	if err != nil {
		return nil, err
	}
	return namesOf(all[:version]), nil
}

func namesOf(all []migration) []string {
	names := make([]string, 0, len(all))
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

// applied returns all migrations and the version of the database.
func (s Set) applied(ctx context.Context, db *sql.DB) (all []migration, version int, err error) {
	if all, err = s.migrations(); err != nil {
		return nil, 0, err
	}
	version, err = Version(ctx, db, s)
	switch {
	case err != nil:
		return nil, 0, err
	case version > len(all):
		return nil, 0, ErrNewer
	}
	return all, version, nil
}

// UpScript returns the SQL of all migrations as one text for the shell of the
// database, which must be one without Semel's tables. Afterwards it is as if Up
// had been there.
func (s Set) UpScript() (string, error) {
	all, err := s.migrations()
	if err != nil {
		return "", err
	}
	parts := []string{createTable + ";"}
	for _, m := range all {
		text, err := s.text(m, "up")
		if err != nil {
			return "", err
		}
		parts = append(parts, text, fmt.Sprintf(insertVersion, m.version, m.name, s.now)+";")
	}
	return s.script(parts), nil
}

// DownScript returns the SQL that undoes all migrations, the latest first, and
// drops what their tables hold.
func (s Set) DownScript() (string, error) {
	all, err := s.migrations()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, m := range slices.Backward(all) {
		text, err := s.text(m, "down")
		if err != nil {
			return "", err
		}
		parts = append(parts, text, fmt.Sprintf(deleteVersion, m.version)+";")
	}
	return s.script(parts), nil
}

// script puts parts into one transaction, where the database can undo them.
func (s Set) script(parts []string) string {
	if !s.commitsEach {
		parts = append(append([]string{"BEGIN;"}, parts...), "COMMIT;")
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// text is one file of a migration without the marks of its format.
func (s Set) text(m migration, direction string) (string, error) {
	text, err := fs.ReadFile(s.files, s.dir+"/"+m.name+"."+direction+".sql")
	if err != nil {
		return "", fmt.Errorf("migrate: read migration: %w", err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "-- +goose ") {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String()), nil
}
