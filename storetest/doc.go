// Package storetest is the contract of a [semel.Store] in runnable form: each
// subtest's name is a sentence that states one rule, and a store that passes
// them all may stand behind any guard. What a rule is for is written where it
// is tested; R- and M-numbers are the findings that the project's guarantees
// cite.
//
// A store is tested by one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New:     func(t *testing.T) semel.Store { … },
//			Advance: func(t *testing.T, s semel.Store, d time.Duration) { … },
//			Lacks:   storetest.Joining | storetest.Processes | storetest.Stalling | storetest.WriteCounting,
//		})
//	}
//
// What the harness does not provide, it must name in Lacks: nothing is left
// untested in silence. Run it for every mode and wrapper of a store that is
// used, since a wrapper can break what it wraps.
//
// A store that several processes share sets Process as well, and lets its
// TestMain become one of them; see [Worker].
//
// What the package does not test: that an acknowledged write survives the loss
// of power or of a host, and what a driver does when its connection is cut. Of
// the fifteen moments of docs/guarantees.md it leaves out those that are not the
// store's alone: a process killed between the effect and its saved end (6), a
// COMMIT without an answer or refused (10), a statement that fails while the
// handler goes on (11), and a clock that steps or a memory that is lost (15, of
// which it tries that the store's clock decides). Write those for your database;
// guarantees.md names the tests that try them on the stores here.
package storetest
