package semel

import (
	"context"
	"fmt"
	"reflect"
)

// Binder is the ability of a store to finish a claim in a transaction that its
// caller owns: a T, such as pgx.Tx.
type Binder[T any] interface {
	// FinishTx is Finish inside tx, which it neither commits nor rolls back.
	// After an error tx cannot be committed. A claim that has an end already
	// is HeldFinal, whatever the end: tx is no part of it.
	FinishTx(ctx context.Context, tx T, c Claim, p FinishParams) (Held, error)
}

// Binding runs work in transactions of type T that its callers own: begin,
// commit and roll back. It is for a service layer that has its transactions
// already; where Semel may own them, Joined mode is simpler and leaves nothing
// to remember.
type Binding[T any] struct {
	guard  *Guard
	binder Binder[T]
}

// Bind returns a binding of g's store to transactions of type T. An error
// matches ErrConfig: the store cannot finish in such a transaction.
func Bind[T any](g *Guard) (*Binding[T], error) {
	binder, ok := As[Binder[T]](g.store)
	if !ok {
		return nil, configError("Bind", fmt.Sprintf("[%v]: the store (%T) cannot finish in such a transaction", reflect.TypeFor[T](), g.store))
	}
	return &Binding[T]{guard: g, binder: binder}, nil
}

// Join claims call's key in a commit of its own, runs work, and saves its
// result in tx; or it answers from the record. Begin tx in READ COMMITTED, do
// all of work's writing in it, and commit it after Join:
//
//   - After an error, roll tx back, and then call RolledBack.
//   - Without one and with Result.Ran, commit. Show the reply only when that
//     has succeeded. If the commit is refused, call RolledBack. If it has no
//     answer, call nothing: nobody knows, and the same call, in a new
//     transaction, finds the reply or what the recovery says.
//   - Without one and without Result.Ran there is nothing to commit: the
//     result is that of [Guard.Do].
//
// What is forgotten is safe: a claim whose transaction is rolled back and of
// which nobody says so lapses, and the recovery decides. Until tx ends nobody
// else can claim the key, also if the lease lapses meanwhile.
//
// Work runs on the caller's goroutine, and Join returns when it does. Its
// context has the handler deadline and is not cancelled with ctx. An error of
// work is returned; wrapped by NotApplied it says that the work, once tx is
// rolled back, had no effect. Call.Mode is Joined, whatever it says; AllInTx
// declares that every effect of work is in tx.
func (b *Binding[T]) Join(ctx context.Context, tx T, call Call, work func(ctx context.Context) ([]byte, error)) (Result, error) {
	call.Mode = Joined
	if err := call.check(); err != nil {
		return Result{}, err
	}
	g := b.guard
	a := newAttempt(ctx, g, call)
	begun, err := a.begin()
	if err != nil {
		return Result{}, err
	}
	if begun.Outcome != BeginClaimed {
		return g.answer(ctx, call, begun)
	}
	g.observeClaim(ctx, call, begun)
	a.record = begun.Record
	return b.run(a, tx, work)
}

// run runs the work under the claim and finishes in tx.
func (b *Binding[T]) run(a *attempt, tx T, work func(ctx context.Context) ([]byte, error)) (Result, error) {
	defer a.cancel(context.Canceled)
	defer a.heartbeat.stop() // also if work panics
	a.heartbeat.start(a)
	body, err := work(a)
	a.heartbeat.stop()
	res := Result{Outcome: OutcomeUnknown, Ran: true, Record: a.record}
	if err != nil {
		if IsNotApplied(err) || a.call.AllInTx {
			res.Outcome = OutcomeReleased
		}
		return res, err
	}
	p := a.params(a.savable(Completion{Verdict: VerdictKeep, Reply: Reply{Body: body}}))
	ctx := a.guard.storeContext(a)
	defer ctx.cancel(context.Canceled)
	held, err := b.binder.FinishTx(ctx, tx, a.claim(), p)
	switch {
	case err != nil:
		return res, a.guard.storeFault(a, err)
	case held.Status != HeldYes:
		a.observe(EventLeaseLost)
		return Result{Outcome: OutcomeUnknown, Record: a.record}, ErrSuperseded.saying("the claim is not held any more, the record is %v: roll the transaction back", held.State)
	}
	res.Outcome, res.Reply = OutcomeExecuted, Reply{Body: body}
	a.observe(EventDone)
	return res, nil
}

// RolledBack says that the transaction of a Join with the result res has been
// rolled back, or that its commit was refused, so that nothing in it took
// effect. The key is free then, if the work was all in the transaction
// (Call.AllInTx) or said that it was not applied; else its outcome is unknown.
// Called while the transaction may still commit, or after a commit without an
// answer, it could free the key of work that takes effect.
//
// Of a Join that ran nothing it does nothing. Errors match ErrStoreUnavailable:
// the claim is left to lapse.
func (b *Binding[T]) RolledBack(ctx context.Context, res Result) error {
	if !res.Ran {
		return nil
	}
	a := newAttempt(ctx, b.guard, Call{Mode: Joined, AllInTx: res.Record.AllInTx})
	a.record = res.Record
	p := FinishParams{To: StateUnknown, Retention: b.guard.cfg.Retention}
	if res.Record.AllInTx || res.Outcome == OutcomeReleased {
		p.To = StateReleased
	}
	held, err := a.finishAlone(p)
	if err == nil && held.Status == HeldYes {
		a.ended(held.State)
	}
	return err
}
