package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/redisstore"
)

// TestRepliesThatAStoreWouldRefuse: one as large as the store says is kept, and
// one that is larger ends the operation all the same.
func TestRepliesThatAStoreWouldRefuse(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (semel.Store, semel.Mode){
		"MariaDB": func(t *testing.T) (semel.Store, semel.Mode) {
			t.Helper()
			return newSQL(t, "MariaDB"), semel.Joined
		},
		"MariaDB, in a text": func(t *testing.T) (semel.Store, semel.Mode) {
			t.Helper()
			return newSQL(t, "MariaDB with a driver set otherwise"), semel.Leased
		},
		"Redis": func(t *testing.T) (semel.Store, semel.Mode) {
			t.Helper()
			server := services.NewRedis(t)
			_, err := server.Do("CONFIG", "SET", "proto-max-bulk-len", "1048576")
			assert.NoError(t, err)
			return openRedis(t, server.URL(), redisstore.Config{}), semel.Leased
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, mode := open(t)
			limit := limitOf(t, store)
			paying := func(ctx context.Context) error {
				if mode != semel.Joined {
					return nil
				}
				return sqlWays["MariaDB"].pay(ctx)
			}
			body := bytes.Repeat([]byte{'\''}, int(limit)+1) // which a text has twice
			repeated(t, store, mode, paying, body[:limit], semel.OutcomeReplayed)
			repeated(t, store, mode, paying, body, semel.OutcomeReplyNotKept)
		})
	}
}

// TestRepliesOverALimitThatNoServerSays: what a busy server may not save in time is
// not kept, and the work does not run again for it.
func TestRepliesOverALimitThatNoServerSays(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "the detector remembers four bytes for each of a reply")
	const most = 16 << 20
	body := make([]byte, most+1)
	for name, open := range map[string]func(t *testing.T) semel.Store{
		"SQLite":     func(t *testing.T) semel.Store { t.Helper(); return newSQLite(t) },
		"PostgreSQL": func(t *testing.T) semel.Store { t.Helper(); return newSQL(t, "PostgreSQL") },
		"pgx":        func(t *testing.T) semel.Store { t.Helper(); return newPgx(t, pgxConfig{}) },
		"Redis": func(t *testing.T) semel.Store {
			t.Helper()
			return openRedis(t, services.NewRedis(t).URL(), redisstore.Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			assert.Equal(t, limitOf(t, store), int64(most), "the largest reply")
			repeated(t, store, semel.Leased, notPaid, body, semel.OutcomeReplyNotKept)
		})
	}
}

func notPaid(context.Context) error { return nil }

func limitOf(t *testing.T, store semel.Store) int64 {
	t.Helper()
	bounded, ok := semel.As[semel.Bounded](store)
	assert.True(t, ok, "the store says how large a reply it takes")
	return bounded.MaxReply()
}

// repeated runs a call that is replied to with body, and again, which has the
// outcome that is wanted, and does not run it.
func repeated(t *testing.T, store semel.Store, mode semel.Mode, pay func(context.Context) error, body []byte, want semel.Outcome) {
	t.Helper()
	g := newGuard(t, store, semel.Config{Logger: unheard})
	call := pgxCall(fmt.Sprint(len(body)), mode)
	runs := 0
	work := func(ctx context.Context) semel.Completion {
		runs++
		assert.NoError(t, pay(ctx))
		return semel.Completion{Verdict: semel.VerdictKeep, Reply: semel.Reply{Status: 201, Body: body}}
	}
	first, err := g.Run(t.Context(), call, work)
	assert.NoError(t, err)
	assert.Equal(t, first.Outcome, semel.OutcomeExecuted)
	assert.True(t, bytes.Equal(first.Reply.Body, body), "the first caller gets the reply")
	again, err := g.Run(t.Context(), call, work)
	assert.NoError(t, err)
	assert.Equal(t, again.Outcome, want)
	assert.Equal(t, again.Reply.Status, 201)
	assert.True(t, want != semel.OutcomeReplayed || bytes.Equal(again.Reply.Body, body), "a replay is the reply")
	assert.Equal(t, runs, 1, "runs")
}
