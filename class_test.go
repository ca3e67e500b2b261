package semel_test

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/memstore"
)

// lossyStore can lose what it has acknowledged.
type lossyStore struct {
	semel.Store

	accepted bool
}

func (s lossyStore) LossAccepted() bool { return s.accepted }

// wrappedStore wraps another one, as what adds logging would.
type wrappedStore struct{ semel.Store }

func (s wrappedStore) Unwrap() semel.Store { return s.Store }

func TestHoldWantsAStoreThatKeepsItsClaims(t *testing.T) {
	t.Parallel()
	inside, err := memstore.New(memstore.Config{})
	assert.NoError(t, err)
	lossy := lossyStore{Store: inside}
	for name, store := range map[string]semel.Store{"lossy": lossy, "lossy inside": wrappedStore{lossy}} {
		_, err = semel.New(store, semel.Hold(), semel.Config{})
		assert.ErrorIs(t, err, semel.ErrConfig, name)
		assert.True(t, strings.Contains(err.Error(), "choose Resume"), "%s: the error says what to choose: %v", name, err)
		_, err = semel.New(store, semel.Resume(semel.Forever), semel.Config{})
		assert.NoError(t, err, name)
	}
	lossy.accepted = true
	_, err = semel.New(lossy, semel.Hold(), semel.Config{})
	assert.NoError(t, err)
}
