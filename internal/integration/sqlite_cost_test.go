package integration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// wal reads the write-ahead log: whatever is written is appended there.
func (s *sqliteStore) wal(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(s.path + "-wal")
	assert.NoError(t, err)
	return string(b)
}

func TestSQLiteCostsOfACall(t *testing.T) {
	t.Parallel()
	leased := joined("k")
	leased.Mode, leased.AllInTx = semel.Leased, false
	for _, c := range []struct {
		name string
		call semel.Call
		work bool
		want int64
	}{
		{"a lone joined payment is two commits: the claim, and the business transaction with the reply", joined("k"), true, 2},
		{"a joined call that asks for no transaction is two commits", joined("k"), false, 2},
		{"a leased call is two commits: claim and finish", leased, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSQLite(t)
			g := newGuard(t, s, semel.Config{})
			work := payOnce
			if !c.work {
				work = notPaying
			}
			before := commitsOf(s.path).Load()
			res, err := g.Run(t.Context(), c.call, work)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, commitsOf(s.path).Load()-before, c.want, "commits")

			before, log := commitsOf(s.path).Load(), s.wal(t)
			assert.True(t, len(log) > 0, "there is a write-ahead log to look at")
			res, err = g.Run(t.Context(), c.call, work)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
			assert.Equal(t, commitsOf(s.path).Load(), before, "commits after a replay")
			assert.True(t, s.wal(t) == log, "a replay leaves the write-ahead log as it was")
		})
	}
}

func TestSQLiteAnswersThatChangeNothingTakeNoLock(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	running, err := s.Begin(t.Context(), beginFor("running"))
	assert.NoError(t, err)
	done, err := s.Begin(t.Context(), beginFor("done"))
	assert.NoError(t, err)
	_, err = s.Finish(t.Context(), done.Record.Claim(), doneWith("x"))
	assert.NoError(t, err)

	tx, err := s.handles.Write.BeginTx(t.Context(), nil)
	assert.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // nothing was done in it.
	other := beginFor("running")
	other.Fingerprint = semel.FingerprintOf([]byte("another request"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, c := range []struct {
		name   string
		params semel.BeginParams
		want   semel.BeginOutcome
	}{
		{"replay", beginFor("done"), semel.BeginReplay},
		{"busy", beginFor("running"), semel.BeginBusy},
		{"mismatch", other, semel.BeginMismatch},
	} {
		res, err := s.Begin(ctx, c.params)
		assert.NoError(t, err, c.name)
		assert.Equal(t, res.Outcome, c.want, c.name)
	}
	rec, err := s.Get(t.Context(), running.Record.Scope, running.Record.Key)
	assert.NoError(t, err)
	assert.Equal(t, rec.State, semel.StateRunning)
}

// TestSQLitePlans guards against a plan that is chosen while the table is
// empty and kept when it has grown.
func TestSQLitePlans(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "one plan after the other, in a table that takes long to grow")
	tap, name := newTap(t)
	s := newSQLiteOn(t, name)
	everyStatement(t, s)
	// Settling names the operation.
	seen := append(tap.statements(), "SELECT id FROM semel_records WHERE operation_id = ?")

	check := func(when string) {
		plans := 0
		for _, query := range seen {
			if !strings.Contains(query, "semel_records") || strings.HasPrefix(query, "INSERT") || strings.HasPrefix(query, "CREATE") {
				continue
			}
			plans++
			for _, step := range s.explain(t, query) {
				if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "CONSTANT ROW") && step != "SCAN one" {
					t.Errorf("%s, a table is read from end to end: %s\nby %s", when, step, query)
				}
				if strings.Contains(step, "TEMP B-TREE") {
					t.Errorf("%s, rows are sorted: %s\nby %s", when, step, query)
				}
			}
			if strings.Contains(query, "expires <= ") && !strings.Contains(strings.Join(s.explain(t, query), "\n"), "semel_records_expires") {
				t.Errorf("%s, the sweep does not use its index:\n%s", when, query)
			}
		}
		assert.True(t, plans >= 6, "%s: got the plans of %d statements, want those of all", when, plans)
	}
	check("on a table that was empty")
	_, err := s.handles.Write.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO semel_records SELECT NULL, 'payments:grown', 'k' || i, 1, 2, 0, 0, randomblob(16), zeroblob(16), 1,
		randomblob(32), zeroblob(32), 'p', zeroblob(32), '', 0, 0, 1, 1, 2, 3, 4, 4, 5, i, 201, '', x'' FROM n`)
	assert.NoError(t, err)
	check("on a table that has grown")
	_, err = s.handles.Write.Exec("ANALYZE")
	assert.NoError(t, err)
	check("with statistics")

	removed, err := s.Sweep(t.Context(), 1000)
	assert.NoError(t, err)
	assert.Equal(t, removed, 1000, "records of one batch")
}

// everyStatement makes the store send each of its statements once.
func everyStatement(t *testing.T, s *sqliteStore) {
	t.Helper()
	res, err := s.Begin(t.Context(), beginFor("k"))
	assert.NoError(t, err)
	_, err = s.Extend(t.Context(), res.Record.Claim(), semel.ExtendParams{Lease: time.Minute})
	assert.NoError(t, err)
	_, err = s.Finish(t.Context(), res.Record.Claim(), doneWith("x"))
	assert.NoError(t, err)
	_, err = s.Sweep(t.Context(), 10)
	assert.NoError(t, err)
	_, err = s.Audits(t.Context(), "s", "k")
	assert.NoError(t, err)
}

func (s *sqliteStore) explain(t *testing.T, query string) []string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	rows, err := s.handles.Read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	assert.NoError(t, err)
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		assert.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	assert.NoError(t, rows.Err())
	return steps
}
