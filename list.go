package semel

import (
	"context"
	"time"
)

// Lister is the ability of a store to find records otherwise than by their
// key, for people who look after them. Nothing in the way of a request needs
// it.
type Lister interface {
	// List returns at most p.Limit records, oldest first by FirstStarted; those
	// of one instant come in an order of the store's. Replies have only their
	// status. Expired records are none, and neither are tombstones.
	List(ctx context.Context, p ListParams) ([]Record, error)

	// ByOperation reads the record that has this operation id, as Get does.
	// After "start over" that is the new id and no longer the old one.
	ByOperation(ctx context.Context, id OperationID) (Record, error)
}

// ListParams says which records List returns.
type ListParams struct {
	// States are those that are listed. None is all.
	States []State
	// Scope is the one that is listed. Empty is all.
	Scope string
	// OlderThan leaves out what was first started less long ago, on the
	// store's clock.
	OlderThan time.Duration
	// After is the Position of the last record of the page before.
	After Position
	// Limit is the most records on a page. Zero or less is none.
	Limit int
}

// Position is where a record stands in a list. The zero Position is before all
// of them.
type Position struct {
	FirstStarted time.Time
	Scope        string
	Key          string
}

// Position returns where r stands in a list.
func (r *Record) Position() Position {
	return Position{FirstStarted: r.FirstStarted, Scope: r.Scope, Key: r.Key}
}

// Stuck reports whether the record waits for somebody: it is unknown, or its
// lease has lapsed and nobody has taken over, and it was first started at least
// after ago. Under Resume the next request may still settle it by itself.
func (r *Record) Stuck(after time.Duration) bool {
	if r.Now.Sub(r.FirstStarted) < after {
		return false
	}
	return r.State == StateUnknown || r.State == StateRunning && r.LeaseLeft() <= 0
}

// ListStuck returns at most p.Limit records of l that are stuck after
// p.OlderThan, oldest first. It asks for pages of the states that can be,
// whatever p.States says, until it has as many.
func ListStuck(ctx context.Context, l Lister, p ListParams) ([]Record, error) {
	p.States = []State{StateRunning, StateUnknown}
	most := p.Limit
	var stuck []Record
	for len(stuck) < most {
		page, err := l.List(ctx, p)
		if err != nil {
			return stuck, unavailable(err)
		}
		for i := range page {
			if len(stuck) < most && page[i].Stuck(p.OlderThan) {
				stuck = append(stuck, page[i])
			}
		}
		if len(page) < p.Limit {
			break
		}
		p.After = page[len(page)-1].Position()
	}
	return stuck, nil
}
