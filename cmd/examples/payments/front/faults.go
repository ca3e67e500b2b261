package front

import (
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// armed is the fault that the next payments meet.
type armed struct {
	Fault payments.Fault `json:"fault"` // empty: none
	// Times is how many payments are still to meet it.
	Times int `json:"times"`
}

// faults hold the fault that is switched on.
type faults struct {
	mu  sync.Mutex
	now armed
}

// arm switches a fault on, in place of the one before.
func (f *faults) arm(a armed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = a
}

// state returns what is switched on.
func (f *faults) state() armed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// take returns the fault that this payment meets.
func (f *faults) take() payments.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	met := f.now.Fault
	if f.now.Times--; f.now.Times <= 0 {
		f.now = armed{}
	}
	return met
}
