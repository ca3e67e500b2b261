// Package payments is the language that the processes of the reference system
// share: what an order is, which doors lead to the payment service, which
// faults can be switched on, what the ledger says and how a bad request is
// refused.
//
// The reference system is a shop page, a payment service and a bank, each a
// process of its own. Money is an integer in minor units everywhere. What the
// system shows and what it does not is written in docs/demo.md.
package payments
