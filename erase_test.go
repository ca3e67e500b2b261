package semel_test

import (
	"context"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

func TestErasing(t *testing.T) {
	t.Parallel()
	erasure := semel.EraseParams{Scope: "payments", Key: "k1", Actor: "ada", Reason: "the customer asked for it"}
	onMemory := func(name string, test func(t *testing.T, g *semel.Guard)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := memstore.New(memstore.Config{})
			assert.NoError(t, err)
			g, err := semel.New(store, semel.Hold(), semel.Config{})
			assert.NoError(t, err)
			test(t, g)
		})
	}
	get := func(t *testing.T, g *semel.Guard) semel.Record {
		t.Helper()
		rec, err := g.Get(t.Context(), erasure.Scope, erasure.Key)
		assert.NoError(t, err)
		return rec
	}
	onMemory("a repeat is told that the reply was not kept, and nothing runs", func(t *testing.T, g *semel.Guard) {
		_, err := g.Do(t.Context(), call("a"), answers("paid"))
		assert.NoError(t, err)
		res, err := g.Erase(t.Context(), erasure)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.EraseDone)
		assert.Equal(t, get(t, g).Reply, semel.Reply{})
		again, err := g.Do(t.Context(), call("a"), mustNotRun(t))
		assert.NoError(t, err)
		assert.Equal(t, again.Outcome, semel.OutcomeReplyNotKept)
		res, err = g.Erase(t.Context(), erasure)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.EraseNothing)
	})
	onMemory("while it runs it is refused, and the reply is saved", func(t *testing.T, g *semel.Guard) {
		_, err := g.Do(t.Context(), call("a"), func(ctx context.Context) ([]byte, error) {
			_, err := g.Erase(ctx, erasure)
			assert.ErrorIs(t, err, semel.ErrEraseRefused)
			assert.Contains(t, err.Error(), "the record is running")
			return []byte("paid"), nil
		})
		assert.NoError(t, err)
		assert.Equal(t, string(get(t, g).Reply.Body), "paid")
	})
	onMemory("who and what for are required", func(t *testing.T, g *semel.Guard) {
		for want, p := range map[string]semel.EraseParams{
			"Actor is required":  {Scope: "s", Key: "k1", Reason: "r"},
			"Reason is required": {Scope: "s", Key: "k1", Actor: "a"},
		} {
			_, err := g.Erase(t.Context(), p)
			assert.ErrorIs(t, err, semel.ErrConfig)
			assert.Contains(t, err.Error(), want)
		}
	})
	t.Run("a store that cannot is refused, and one that fails is unavailable", func(t *testing.T) {
		t.Parallel()
		g, err := semel.New(newFaultStore(t), semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		_, err = g.Erase(t.Context(), erasure)
		assert.ErrorIs(t, err, semel.ErrConfig)
		assert.Contains(t, err.Error(), "cannot erase")
		g, err = semel.New(failingEraser{newFaultStore(t)}, semel.Hold(), semel.Config{})
		assert.NoError(t, err)
		_, err = g.Erase(t.Context(), erasure)
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
	})
}

type failingEraser struct{ semel.Store }

func (failingEraser) Erase(context.Context, string, string, semel.Audit) (semel.EraseResult, error) {
	return semel.EraseResult{}, errDown
}
