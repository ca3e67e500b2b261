// Package storm kills the reference system at random moments and counts the
// money afterwards.
//
// A run is a bank and several payment services on one SQLite file, all real
// processes. Customers place orders with a key and send them again until they
// are answered, while requests and replies are lost and SIGKILL meets a
// service, the bank, all of them at once or, in every fourth run, "semel demo"
// as the supervisor and its children. When everything has ended, the files of
// both are read and held against what the customers were told:
//
//   - an order answered 201 is stored once and charged once, under the
//     operation id that follows from its key; a declined one is neither;
//   - the bank has taken the sum of the paid orders and nothing else;
//   - all final answers to one key are the same, byte for byte;
//   - no key is in progress longer than a lease after whoever held it ended,
//     and no order unanswered for a minute after the last thing that went wrong;
//   - no attempt is taken over while it runs, and none that was taken over
//     finishes, by what the services have logged: in every fourth run one is
//     frozen at work for longer than its lease;
//   - all files pass SQLite's integrity check, no record is left open, no
//     process has panicked, and none is left behind.
//
// "go test" has a dozen runs, "make long" (SEMEL_LONG=1) five hundred. What
// happens in a run is drawn from its seed, which is printed with every failure:
//
//	SEMEL_STORM_SEED=17 go test -run 'TestStorm$' ./internal/integration/storm
//
// plays run 17 alone, and SEMEL_STORM_RUNS=50 beside it the fifty that begin
// there. The seed gives the same orders, faults and kills at the same moments
// of the same requests; how the processes interleave is the machine's affair,
// so play a rare failure several times (-count=20).
package storm
