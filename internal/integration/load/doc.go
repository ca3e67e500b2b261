// Package load proves each store under load: four worker processes on one
// store, each with sixty-four connections to its clients and to the server,
// serve payments by real HTTP, and a driver sends each of very many keys three
// to ten times, at once and again later, to whichever process. A client waits
// and asks again where it is told to, until it has the answer. When all is over,
// what clients were told is held against what has happened:
//
//   - every key is executed once and its amount is in the ledger once, under the
//     operation id that follows from the key, and nothing else is;
//   - all final answers to one key are the same, byte for byte; what was
//     answered 2xx is in the ledger, and what is there was answered 2xx;
//   - every other answer is one that docs/problems.md has, and says when to ask
//     again;
//   - no key is left open.
//
// Under most loads the server is restarted, PostgreSQL in immediate mode, the
// others by SIGKILL, and under Resume a worker is frozen for longer than its
// lease as well. The workers are left to recover by themselves. What a
// transaction cannot undo is in a journal outside the database, a line for each
// execution: under Hold there is at most one of a key, whatever happens. Keys
// whose outcome nobody knows then are told so, and do not run again until the
// load is over; in the end those that the journal does not know are settled as
// not applied, and the others resumed.
//
// "go test" has some hundred keys with one or two restarts of each server, "make
// long" (SEMEL_LONG=1) a hundred thousand on PostgreSQL and twenty thousand on
// the others, with ten restarts. What is sent and struck is drawn from a seed,
// which is printed with the figures and every failure:
//
//	SEMEL_LOAD_SEED=17 go test -run 'TestLoad/MariaDB' ./internal/integration/load
//
// and SEMEL_LOAD_KEYS=5000 beside it says how many keys each load has. How the
// processes interleave is the machine's affair, so play a rare failure several
// times.
package load
