package crowd

import (
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

func TestAnOrderWithoutAnAnswerBreaksTheRunAtTheDoorWithSemelOnly(t *testing.T) {
	t.Parallel()
	right := payments.Account{Orders: 3, Payments: 3, Charges: 3, Charged: 3, Taken: 7500}
	for door, want := range map[payments.Door]Report{
		payments.Keyed:   {Broken: "time was up: 1 orders at the door keyed were not answered within 55s"},
		payments.Keyless: {Failed: "time was up: 1 orders at the door keyless were not answered within 55s"},
	} {
		r := Report{Settings: Settings{Shoppers: 3}, Doors: []Part{
			{Door: payments.Keyless, Ledger: &right, Want: 7500},
			{Door: payments.Keyed, Ledger: &right, Want: 7500},
		}}
		for i := range r.Doors {
			if r.Doors[i].Door == door {
				r.Doors[i].Open = 1
			}
		}
		r.judge()
		assert.Equal(t, r.Broken, want.Broken)
		assert.Equal(t, r.Failed, want.Failed)
		assert.Equal(t, r.Holds == nil, want.Failed != "", "no result")
	}
}
