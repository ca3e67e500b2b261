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
			bounded, ok := semel.As[semel.Bounded](store)
			assert.True(t, ok, "the store says how large a reply it takes")
			g := newGuard(t, store, semel.Config{Logger: unheard})
			for over, want := range []semel.Outcome{semel.OutcomeReplayed, semel.OutcomeReplyNotKept} {
				call := pgxCall(fmt.Sprint("over by ", over), mode)
				body := bytes.Repeat([]byte{'\''}, int(bounded.MaxReply())+over) // which a text has twice
				runs := 0
				work := func(ctx context.Context) semel.Completion {
					runs++
					if mode == semel.Joined {
						assert.NoError(t, sqlWays["MariaDB"].pay(ctx))
					}
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
		})
	}
}
