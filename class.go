package semel

import "time"

// StoreClass says how much of what a store has acknowledged it may lose (R9).
type StoreClass string

// The classes.
const (
	// Durable survives the loss of the process and of power.
	Durable StoreClass = "durable"
	// DurableUnlessFailover loses acknowledged writes when a replica that has
	// not seen them takes over.
	DurableUnlessFailover StoreClass = "durable-unless-failover"
	// BestEffort loses everything with the process.
	BestEffort StoreClass = "best-effort"
)

// Classed is the ability of a store to declare its class. One that does not
// counts as BestEffort.
type Classed interface {
	Class() StoreClass
}

// ClassOf returns the class that s declares.
func ClassOf(s Store) StoreClass {
	if c, ok := As[Classed](s); ok {
		return c.Class()
	}
	return BestEffort
}

// Limited is the ability of a store to say after how long its database gives
// a statement up by itself. New wants StoreTimeout to be longer, so that a
// caller who gave up knows that nothing is still to execute (R15).
type Limited interface {
	StatementLimit() time.Duration
}

// Bounded is the ability of a store to say how large a reply it can save. A
// larger one is not kept: the store would refuse it at every try, and the work
// would run again (see Completion.Reply).
type Bounded interface {
	// MaxReply is the most bytes that the body of a reply and its header, as
	// Header.MarshalText writes it, have together.
	MaxReply() int64
}

// Lossy is the ability of a store that can lose what it has acknowledged to say
// whether whoever opened it accepts that. New refuses Hold over one where
// nobody does: a claim that is lost is not held, and the work runs again (R9).
// Resume runs it again under the same operation id.
type Lossy interface {
	LossAccepted() bool
}
