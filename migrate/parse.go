package migrate

import (
	"errors"
	"strings"
)

// parse splits a file in goose format into statements. A statement ends with
// the line that ends in a semicolon; one that holds semicolons of its own
// stands between "-- +goose StatementBegin" and "-- +goose StatementEnd".
// Comments before a statement belong to the file, comments inside it to the
// statement, and so to the schema that the database shows.
func parse(text string) ([]string, error) {
	var (
		stmts   []string
		current strings.Builder
		block   bool
	)
	end := func() {
		if s := strings.TrimSpace(current.String()); s != "" {
			stmts = append(stmts, s)
		}
		current.Reset()
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "-- +goose StatementBegin":
			if block {
				return nil, errors.New("StatementBegin inside a statement")
			}
			block = true
		case trimmed == "-- +goose StatementEnd":
			if !block {
				return nil, errors.New("StatementEnd without StatementBegin")
			}
			block = false
			end()
		case current.Len() == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--")):
		default:
			current.WriteString(line)
			if !block && strings.HasSuffix(trimmed, ";") {
				end()
			}
		}
	}
	if block || current.Len() > 0 {
		return nil, errors.New("the last statement does not end")
	}
	return stmts, nil
}
