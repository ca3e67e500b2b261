package semel_test

import (
	"encoding/json"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAnOperationID(t *testing.T) {
	t.Parallel()
	id := semel.NewOperationID("shop", "payments", "k1", 0)
	t.Run("is a UUID of version 8, the same for the same parts for good", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, id.String(), "5460bc49-88cf-8998-a2d6-c217999e2259")
	})
	t.Run("differs where any part does, also if their joined text does not", func(t *testing.T) {
		t.Parallel()
		seen := map[semel.OperationID]bool{id: true}
		for _, other := range []semel.OperationID{
			semel.NewOperationID("sho", "ppayments", "k1", 0),
			semel.NewOperationID("shop", "paymentsk", "1", 0),
			semel.NewOperationID("shop", "payments", "k1", 1),
			semel.NewOperationID("shop", "payments", "K1", 0),
		} {
			assert.Equal(t, seen[other], false, "%v", other)
			seen[other] = true
		}
	})
	t.Run("is its text in JSON and in a statement, and is read back from both", func(t *testing.T) {
		t.Parallel()
		text, err := json.Marshal(map[string]any{"id": id})
		assert.NoError(t, err)
		assert.Equal(t, string(text), `{"id":"`+id.String()+`"}`)
		var back struct{ ID semel.OperationID }
		assert.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, back.ID, id)

		argument, err := id.Value()
		assert.NoError(t, err)
		assert.Equal(t, argument, any(id.String()))
		for _, column := range []any{argument, id[:]} {
			var scanned semel.OperationID
			assert.NoError(t, scanned.Scan(column))
			assert.Equal(t, scanned, id)
		}
	})
}
