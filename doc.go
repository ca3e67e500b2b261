// Package semel makes repeated requests safe: whatever a client sends twice
// under one key takes effect once, and the repeat gets the reply it missed.
//
// A [Guard] claims the key in a [Store] first and runs the work then. The
// reply is saved before anybody sees it, and replayed to every repeat while
// the record is kept. An attempt whose end nobody knows is never taken for a
// failure: the [Recovery] of the guard says whether the next request may run
// it again, under the same [OperationID], or must wait for a person.
//
// What the package does not promise: an effect outside the store's database,
// such as a charge at a bank, happens exactly once only if the bank honours
// the operation id. Semel makes that id the same for every attempt.
//
// Packages around this one: memstore and sqlstore keep records, and migrate
// brings a database to the schema of the latter; semelhttp is the net/http
// middleware, with fingerprint, which tells one request from another, and
// idempotencykey, which reads the key; semelotel reports metrics; and storetest
// is the contract a store of your own has to pass.
package semel
