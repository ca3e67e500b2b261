package semel

import (
	"context"
	"time"
)

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
	// rolled back. Only an end that is done is committed: another is an error,
	// sends nothing and leaves the transaction open.
	Commit(ctx context.Context, p FinishParams) (Held, error)
	// Rollback ends the transaction without effect. It may be called at any
	// time after the work, also when nothing was opened, and twice. After an
	// error nobody knows whether the writes are undone: the transaction may
	// have been ended, and committed, by somebody else (R37).
	Rollback() error
}

// AtomicJoiner is the ability of a store to claim in the business transaction
// as well (atomic mode): claim, work and reply are one commit, and whatever
// ends the transaction otherwise leaves nothing at all.
type AtomicJoiner interface {
	// BeginAtomic is Begin in a business transaction, which it opens where it
	// answers BeginClaimed; only then is there a joint. Until that commits
	// others see the key as it was before. While it is open another
	// BeginAtomic for the key is told at once that it is busy, whatever its
	// fingerprint: a claim that is not committed cannot be compared (R17). A
	// Begin is not kept from claiming, and the commit of the transaction then
	// refused as superseded.
	//
	// Of p the lease means nothing: the transaction is the lease. The database
	// ends one that is left idle for longer than limit, which is how long the
	// work may take, so that the loss of a host frees the key (R17). After an
	// error nothing is claimed.
	BeginAtomic(ctx context.Context, p BeginParams, limit time.Duration) (BeginResult, AtomicJoint, error)
}

// AtomicJoint is the business transaction of one attempt with its claim in it.
type AtomicJoint interface {
	Joint
	// CommitReply is Commit without what the work has written, which may have
	// failed (R13).
	CommitReply(ctx context.Context, p FinishParams) (Held, error)
}
