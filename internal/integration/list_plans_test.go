package integration

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// listPlan is how what an operator asks for is to be found, in a table that has
// grown, with statistics or without: by the index of that name and no other.
type listPlan struct {
	what  string
	index string
	ask   func(t *testing.T, s *sqlstore.Store) error
}

var listPlans = []listPlan{
	{"what is stuck", "semel_records_age", func(t *testing.T, s *sqlstore.Store) error {
		t.Helper()
		_, err := semel.ListStuck(t.Context(), s, semel.ListParams{OlderThan: time.Hour, Limit: 10})
		return err
	}},
	{"a list of all", "semel_records_age", func(t *testing.T, s *sqlstore.Store) error {
		t.Helper()
		_, err := s.List(t.Context(), semel.ListParams{Limit: 10})
		return err
	}},
	{"the list of a scope", "primary key", func(t *testing.T, s *sqlstore.Store) error {
		t.Helper()
		_, err := s.List(t.Context(), semel.ListParams{Scope: "payments:c_1", Limit: 10})
		return err
	}},
	{"an operation", "semel_records_operation", func(t *testing.T, s *sqlstore.Store) error {
		t.Helper()
		_, err := s.ByOperation(t.Context(), semel.OperationID{1})
		return err
	}},
	{"the lag of the sweep", "semel_records_expires", func(t *testing.T, s *sqlstore.Store) error {
		t.Helper()
		_, err := s.SweepLag(t.Context())
		return err
	}},
}

// primaryKeys are what plans call it that is the primary key elsewhere.
var primaryKeys = map[string]string{"SQLite": "semel_records_scope_key", "PostgreSQL": "semel_records_pkey", "MariaDB": "PRIMARY"}

// usedIndexes are the indexes of the table of keys that a plan uses.
func usedIndexes(plan string) []string {
	found := regexp.MustCompile(`(?:USING (?:COVERING )?INDEX|using|Scan on) semel_records_\w+|\|(?:semel_records_\w+|PRIMARY)\|\d`).FindAllString(plan, -1)
	for i, text := range found {
		found[i] = regexp.MustCompile(`semel_records_\w+|PRIMARY`).FindString(text)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// checkListPlan checks the plans of the statements that p has sent.
func (p *listPlan) check(t *testing.T, database, when string, sent []string, explain func(query string) string) {
	t.Helper()
	want := strings.Replace(p.index, "primary key", primaryKeys[database], 1)
	plans := 0
	for _, query := range sent {
		if !strings.Contains(query, "semel_records") {
			continue
		}
		plans++
		plan := explain(query)
		assert.Equal(t, usedIndexes(plan), []string{want}, "%s, %s: the indexes of\n%s\nby %s", when, p.what, plan, query)
	}
	assert.True(t, plans > 0, "%s: %s sends a statement", when, p.what)
}

func TestSQLitePlansOfLists(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "one plan after the other, in a table that takes long to grow")
	tap, name := newTap(t)
	s := newSQLiteOn(t, name)
	check := func(when string) {
		for _, p := range listPlans {
			before := len(tap.statements())
			assert.NoError(t, p.ask(t, s.Store))
			p.check(t, "SQLite", when, tap.statements()[before:], func(query string) string { return strings.Join(s.explain(t, query), "\n") })
		}
	}
	check("in an empty table")
	for _, statement := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO semel_records SELECT NULL, 'payments:grown', 'k' || i, 1, 2, 0, 0, randomblob(16), zeroblob(16), 1,
		randomblob(32), zeroblob(32), 'p', zeroblob(32), '', 0, 0, 1, 1, i, 3, 4, 4, 5, i, 201, '', x'' FROM n`,
		"ANALYZE",
	} {
		_, err := s.handles.Write.Exec(statement)
		assert.NoError(t, err)
		check("after " + statement)
	}
}

func TestServersPlansOfLists(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		unshifted := func(statement string) string { return strings.ReplaceAll(statement, " + shift()", "") }
		w, s := onWire(t, s, unshifted)
		var sent [][]string
		for _, p := range listPlans {
			sent = append(sent, w.during(func() { assert.NoError(t, p.ask(t, s.Store)) }))
		}
		explain := func(query string) string {
			return s.server.plan(t, s, strings.ReplaceAll(unshifted(query), "operation_id = ?", "operation_id = x'31'"))
		}
		check := func(when string) {
			for i, p := range listPlans {
				p.check(t, s.way, when, sent[i], explain)
			}
		}
		s.exec(t, s.server.grow)
		check("in a table that has grown")
		s.exec(t, "ANALYZE "+s.server.analyze)
		check("with statistics")
	})
}
