package integration

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// What docs/sqlite.md and docs/operations.md quote is here, and what they say
// is tried.

func openOwn(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(4000)&_pragma=foreign_keys(1)")
}

func TestSQLiteBesideAHandleOfTheProgramsOwn(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	own, err := openOwn(s.path)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, own.Close()) })
	insertOwn := func() error {
		_, err := own.ExecContext(t.Context(), insertPayment, "own")
		return err
	}
	count := func() (n int) {
		assert.NoError(t, own.QueryRowContext(t.Context(), "SELECT count(*) FROM payments").Scan(&n))
		return n
	}
	assert.NoError(t, insertOwn(), "before")
	res, err := runJoined(t, s, func(ctx context.Context) semel.Completion {
		done := payOnce(ctx)
		assert.Equal(t, count(), 1, "payments that it sees: those that are committed")
		start := time.Now()
		assert.Contains(t, insertOwn().Error(), "database is locked")
		assert.True(t, time.Since(start) > 3*time.Second, "it waited for its timeout")
		return done
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
	assert.NoError(t, insertOwn(), "afterwards")
	assert.Equal(t, count(), 3)
}

// settle frees the key of an operation that the bank has never seen.
func settle(ctx context.Context, guard *semel.Guard, scope, key string) error {
	record, err := guard.Get(ctx, scope, key)
	if err != nil {
		return err
	}
	fmt.Println(record.State, "attempt", record.Attempt, "operation", record.OperationID) // ask the bank for that one
	_, err = guard.Settle(ctx, semel.SettleParams{
		Expect: record,
		As:     semel.SettleNotApplied,
		Actor:  "ann@example.com",
		Reason: "the bank has no charge under this id, ticket 4711",
	})
	return err
}

func sweep(ctx context.Context, store semel.Store) error {
	sweeper, err := semel.NewSweeper(store, semel.SweeperConfig{})
	if err != nil {
		return err
	}
	return sweeper.Run(ctx) // once a minute, until ctx ends
}

// stateOf is what became of a key.
func stateOf(t *testing.T, g *semel.Guard, key string) semel.State {
	t.Helper()
	rec, err := g.Get(t.Context(), joined(key).Scope, key)
	assert.NoError(t, err)
	return rec.State
}

func TestSettlingAsTheOperationsPageShowsIt(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	_, err := s.Begin(t.Context(), beginFor("k"))
	assert.NoError(t, err)
	g := newGuard(t, s, semel.Config{})
	err = settle(t.Context(), g, joined("k").Scope, "k")
	assert.ErrorIs(t, err, semel.ErrSettleRefused, "while it runs")
	assert.NoError(t, s.clock.Advance(2*time.Minute))
	err = settle(t.Context(), g, joined("k").Scope, "k")
	assert.ErrorIs(t, err, semel.ErrSettleRefused, "once it has lapsed, and may still have an effect")
	assert.NoError(t, s.clock.Advance(semel.DefaultHandlerDeadline+semel.DefaultSettleDelay))
	assert.NoError(t, settle(t.Context(), g, joined("k").Scope, "k"))
	assert.Equal(t, stateOf(t, g, "k"), semel.StateReleased)
}

func TestSweepingAsTheOperationsPageShowsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		assert.NoError(t, err)
		g := newGuard(t, store, semel.Config{Retention: time.Hour})
		call := joined("k")
		call.Mode, call.AllInTx = semel.Leased, false
		_, err = g.Run(t.Context(), call, notPaying)
		assert.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		assert.ErrorIs(t, sweep(ctx, store), context.DeadlineExceeded)
		assert.Equal(t, stateOf(t, g, "k"), semel.StateAbsent)
	})
}

var sqlBlock = regexp.MustCompile("(?ms)^```sql\n(.*?)^```")

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	assert.NoError(t, err)
	return string(text)
}

// queries are what a document tells an operator to type into an SQL shell.
func queries(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	for _, m := range sqlBlock.FindAllStringSubmatch(document(t, path), -1) {
		found = append(found, m[1])
	}
	return found
}

// answers runs a query and returns the rows, each as the columns named joined
// by spaces.
func answers(t *testing.T, db *sql.DB, query string, columns ...string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	assert.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	assert.NoError(t, err)
	var lines []string
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		assert.NoError(t, rows.Scan(into...))
		var line []string
		for _, column := range columns {
			i := slices.Index(names, column)
			assert.True(t, i >= 0, "there is a column %s in %v", column, names)
			line = append(line, values[i].String)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	assert.NoError(t, rows.Err())
	return lines
}

func TestQueriesOfTheOperationsPageFindWhatTheySay(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	finish := map[string]semel.State{"done": semel.StateDone, "released": semel.StateReleased, "unknown": semel.StateUnknown}
	begin := func(key string) {
		p := beginFor(key)
		if key == "unknown" {
			p.OperationID = semel.NewOperationID("shop", "charges", "order-42", 0)
		}
		begun, err := s.Begin(t.Context(), p)
		assert.NoError(t, err)
		if to, ok := finish[key]; ok {
			f := doneWith("x")
			f.To, f.KeepReply = to, to == semel.StateDone
			_, err = s.Finish(t.Context(), begun.Record.Claim(), f)
			assert.NoError(t, err)
		}
	}
	assert.NoError(t, s.clock.Advance(-time.Hour)) // the pages' SQL has the database's own clock
	for _, key := range []string{"lapsed", "unknown", "done", "released"} {
		begin(key)
	}
	assert.NoError(t, s.clock.Advance(time.Hour))
	begin("running")

	asked := queries(t, "docs/operations.md")
	assert.Equal(t, len(asked), 3, "queries in the document")
	got := answers(t, s.handles.Read, asked[0], "key", "scope", "state")
	slices.Sort(got)
	assert.Equal(t, got, []string{"lapsed payments:c_1 lapsed", "unknown payments:c_1 unknown"})
	id := answers(t, s.handles.Read, asked[0], "operation")
	assert.True(t, slices.Contains(id, semel.NewOperationID("shop", "charges", "order-42", 0).String()), "the ids are written as in the logs, got %v", id)

	assert.Equal(t, answers(t, s.handles.Read, asked[1], "key", "scope", "state", "attempt"), []string{"unknown payments:c_1 unknown 1"})
	started := answers(t, s.handles.Read, asked[1], "first_started")
	rec, err := s.Get(t.Context(), "payments:c_1", "unknown")
	assert.NoError(t, err)
	assert.Equal(t, started, []string{rec.FirstStarted.UTC().Format(time.DateTime)})
}
