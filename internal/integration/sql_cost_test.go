package integration

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// onWire returns the store through a wire, its connections open and its
// statements prepared.
func onWire(t *testing.T, s *sqlStore, rewrite func(statement string) string) (*wire, *sqlStore) {
	t.Helper()
	w, name := newWire(t, s.server.driver)
	w.rewrite = rewrite
	s = s.by(t, name)
	everyCall(t, s, "warm")
	everyCall(t, s, "warmer")
	return w, s
}

// everyCall makes the store send each of its statements once.
func everyCall(t *testing.T, s *sqlStore, key string) {
	t.Helper()
	p := beginFor(key)
	rec := begun(t, s, p)
	_, err := s.Begin(t.Context(), p) // which renews
	assert.NoError(t, err)
	_, err = s.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: time.Minute})
	assert.NoError(t, err)
	_, err = s.Finish(t.Context(), rec.Claim(), doneWith("x"))
	assert.NoError(t, err)
	_, err = s.Begin(t.Context(), beginFor(key))
	assert.NoError(t, err)
	_, err = s.Sweep(t.Context(), 10)
	assert.NoError(t, err)
	_, err = s.Audits(t.Context(), "s", "k")
	assert.NoError(t, err)
}

func TestServersCostsOfACall(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		w, s := onWire(t, s, func(statement string) string { return statement })
		cost := func(what string, want int, call func()) {
			t.Helper()
			sent := w.during(call)
			assert.Equal(t, len(sent), want, "round trips of %s:\n%s", what, strings.Join(sent, "\n--\n"))
		}
		var rec *semel.Record
		cost("a claim of a new key", 1, func() { rec = begun(t, s, beginFor("k")) })
		cost("a renewal", 1, func() {
			_, err := s.Extend(t.Context(), rec.Claim(), semel.ExtendParams{Lease: time.Minute})
			assert.NoError(t, err)
		})
		cost("a finish", 1, func() {
			_, err := s.Finish(t.Context(), rec.Claim(), doneWith("x"))
			assert.NoError(t, err)
		})
		s.advance(t, 2*time.Minute) // one that is younger asks MariaDB whether it is on disk
		cost("a replay", s.server.replayCost, func() {
			res, err := s.Begin(t.Context(), beginFor("k"))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginReplay)
		})
		rec = begun(t, s, beginFor("joined"))
		joint := s.Join(rec.Claim())
		cost("opening a business transaction", s.server.openCost, func() {
			joint.Context(t.Context())
			assert.NoError(t, s.server.nothing(joint.Context(t.Context())))
		})
		cost("a joined commit", s.server.commitCost, func() {
			held, err := joint.Commit(t.Context(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes)
		})
	})
}

// TestServersPlans guards against a plan that reads the whole table, also one
// that was made while it was small (the store's connections keep theirs).
func TestServersPlans(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		// No index is searched for what a function of the test's says.
		unshifted := func(statement string) string { return strings.ReplaceAll(statement, " + shift()", "") }
		first := s
		w, s := onWire(t, s, unshifted)
		seen := w.during(func() { everyCall(t, s, "k") })
		// Settling names the operation.
		seen = append(seen, "SELECT scope FROM semel_records WHERE operation_id = "+fmt.Sprintf(s.server.bytes, "0123456789abcdef"))
		check := func(when string) {
			plans := 0
			for _, query := range seen {
				if !strings.Contains(query, "semel_records") {
					continue
				}
				query = unshifted(query)
				plans++
				plan := s.server.plan(t, s, query)
				assert.True(t, !s.server.scan.MatchString(plan), "%s a table is read from end to end:\n%s\nby %s", when, plan, query)
				if strings.Contains(query, "DELETE") {
					assert.True(t, s.server.deletes.MatchString(plan), "%s the sweep finds what it deletes by no more than its place:\n%s\nby %s", when, plan, query)
				}
				if strings.Contains(query, "expires <= ") {
					assert.True(t, s.server.sweeps.MatchString(plan), "%s the sweep does not search its index:\n%s\nby %s", when, plan, query)
				}
			}
			assert.True(t, plans >= 8, "%s: got the plans of %d statements, want those of all", when, plans)
		}
		check("in a small table")
		// A plan that PostgreSQL makes for good, at the sixth use, of a table that it
		// knows to be small.
		s.exec(t, s.server.small)
		for i := range 8 {
			everyCall(t, s, fmt.Sprint("small ", i))
		}
		for _, statement := range s.server.watch {
			s.exec(t, statement)
		}
		s.exec(t, s.server.grow)
		before := s.number(t, s.server.scanned)
		check("in one that has grown")
		for i := range 25 { // by the plans that were made before
			everyCall(t, s, fmt.Sprint("grown ", i))
		}
		s.exec(t, "ANALYZE "+s.server.analyze)
		check("with statistics")
		for i := range 25 {
			everyCall(t, s, fmt.Sprint("grown and known ", i))
		}
		// PostgreSQL knows for certain what a connection has read when it ends.
		for _, ending := range []*sqlStore{first, s} {
			assert.NoError(t, ending.handles.Close())
		}
		s.test.SetMaxOpenConns(1)
		assert.Eventually(t, "the store's connections have ended", func() bool { return s.number(t, s.server.others) == 0 })
		read := s.number(t, s.server.scanned) - before
		assert.True(t, read < 10_000, "350 calls on the table that has grown have read %d rows of it", read)
	})
}

// postgresPlan returns the plan that a prepared statement of the store's own
// connections keeps.
func postgresPlan(t *testing.T, s *sqlStore, query string) string {
	t.Helper()
	conn, err := s.test.Conn(t.Context())
	assert.NoError(t, err)
	defer conn.Close()
	args := len(regexp.MustCompile(`\$\d+`).FindAllString(query, -1))
	execute := "EXPLAIN EXECUTE q"
	if args > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("NULL,", args), ",") + ")"
	}
	for _, statement := range []string{"SET plan_cache_mode = force_generic_plan", "SET enable_seqscan = off", "PREPARE q AS " + query} {
		_, err := conn.ExecContext(t.Context(), statement)
		assert.NoError(t, err, statement)
	}
	defer conn.ExecContext(context.WithoutCancel(t.Context()), "DEALLOCATE q") //nolint:errcheck // the connection is the test's.
	return lines(t, func() (*sql.Rows, error) { return conn.QueryContext(t.Context(), execute) })
}

// mariadbPlan returns a plan as a table.
func mariadbPlan(t *testing.T, s *sqlStore, query string) string {
	t.Helper()
	query = regexp.MustCompile(`(scope|idempotency_key|token) = \?`).ReplaceAllString(query, "$1 = x'31'")
	query = strings.ReplaceAll(strings.TrimPrefix(query, "PREPARE "), "?", "1")
	return lines(t, func() (*sql.Rows, error) { return s.test.Query("EXPLAIN " + query) })
}

// lines are rows as text, their columns kept apart by bars.
func lines(t *testing.T, query func() (*sql.Rows, error)) string {
	t.Helper()
	rows, err := query()
	assert.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	assert.NoError(t, err)
	var text strings.Builder
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		assert.NoError(t, rows.Scan(into...))
		for _, v := range values {
			text.WriteString(v.String + "|")
		}
		text.WriteString("\n")
	}
	assert.NoError(t, rows.Err())
	return text.String()
}
