package integration

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

// A step of the store's clock is no worse than a crash (R24), on every server.

// shifted is a store whose clock a test moves.
type shifted interface {
	semel.Store
	advance(t testing.TB, d time.Duration)
}

func TestPostgresAndMariaDBClockThatSteps(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) shifted{
		"PostgreSQL": func(t *testing.T) shifted { t.Helper(); return newSQL(t, "PostgreSQL") },
		"MariaDB":    func(t *testing.T) shifted { t.Helper(); return newSQL(t, "MariaDB") },
		"pgx":        func(t *testing.T) shifted { t.Helper(); return newPgx(t, pgxConfig{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			early := begun(t, s, beginFor("taken over"))
			begun(t, s, beginFor("left"))

			s.advance(t, 2*time.Hour)
			heir := begun(t, s, beginFor("taken over"))
			assert.Equal(t, heir.Attempt, 2, "what runs lapses when the clock goes ahead")
			held, err := s.Finish(t.Context(), early.Claim(), doneWith("x"))
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldSuperseded, "who lost it is fenced off")
			left := begun(t, s, beginFor("left"))

			s.advance(t, -3*time.Hour)
			held, err = s.Extend(t.Context(), heir.Claim(), semel.ExtendParams{Lease: time.Minute})
			assert.NoError(t, err)
			assert.Equal(t, held.Status, semel.HeldYes, "whoever lives renews")
			res, err := s.Begin(t.Context(), beginFor("taken over"))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginBusy, "and is not taken over")
			assert.True(t, res.Record.LeaseLeft() <= time.Minute, "no lease is as long as the step: %v", res.Record.LeaseLeft())
			assert.Equal(t, begun(t, s, beginFor("left")).Attempt, left.Attempt+1, "whoever died is, and does not hold the key for the size of the step")

			_, err = s.Finish(t.Context(), heir.Claim(), doneWith("x"))
			assert.NoError(t, err)
			res, err = s.Begin(t.Context(), beginFor("taken over"))
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.BeginReplay, "what is done stays so")
		})
	}
}
