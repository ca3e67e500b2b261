package semel

import "context"

// Joiner is the ability of a store to save a reply in the business
// transaction of the work (joined mode), so that both are there or neither is.
type Joiner interface {
	// Join returns the transaction that the work of claim c may ask for. It
	// opens nothing.
	Join(c Claim) Joint
}

// Joint is the business transaction of one attempt. The store's own Tx
// function opens it at the first call in the work (R18), and hands out a
// wrapper that can neither commit nor outlive the work (R12, R37).
//
// The guard calls these methods after the work has returned, on one goroutine.
type Joint interface {
	// Context returns ctx with the joint in it, where Tx finds it.
	Context(ctx context.Context) context.Context
	// Opened reports whether the work asked for its transaction. Unlike the
	// other methods it may be called while the work runs.
	Opened() bool
	// Commit finishes the claim inside the transaction and commits. An error
	// that matches ErrCommitRefused means that nothing took effect; after any
	// other error nobody knows. HeldSuperseded and HeldFinal mean that it
	// rolled back.
	Commit(ctx context.Context, p FinishParams) (Held, error)
	// Rollback ends the transaction without effect. It may be called at any
	// time after the work, also when nothing was opened, and twice. After an
	// error nobody knows whether the writes are undone: the transaction may
	// have been ended, and committed, by somebody else (R37).
	Rollback() error
}
