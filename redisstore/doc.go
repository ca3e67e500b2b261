// Package redisstore keeps records in Redis or Valkey, one server or a Redis
// Cluster, through redis/rueidis: beside any work (leased mode).
//
//	store, err := redisstore.Open(ctx, "redis://localhost:6379/0", redisstore.Config{})
//	defer store.Close()
//	guard, err := semel.New(store, semel.Resume(24*time.Hour), semel.Config{})
//
// What it guarantees: a claim is one round trip, a finish another, a replay one
// that writes nothing; those of many callers share round trips. Each step is
// one script, which reads the server's clock, compares and writes, so that
// nobody comes in between. A step that is held up on its way for longer than
// its caller waits does nothing when it arrives. Records have no time to live:
// what has expired is removed by Sweep, and nothing else is.
//
// What it does not: Redis acknowledges a write before its replicas have it. In
// a failover the last claims and replies can be lost, and the keys are new.
// Under semel.Resume that is harmless as long as what the work calls honours
// the operation id, which is the same with or without the record. Under
// semel.Hold the work runs twice, so a guard with it is refused unless
// [Config.AcceptLoss] says otherwise. The class is semel.DurableUnlessFailover
// where each write is on disk before it is acknowledged (appendonly yes,
// appendfsync always), else semel.BestEffort. A server that evicts keys which
// have no time to live (maxmemory-policy allkeys-…) is refused.
//
// When a connection breaks, the caller does not know whether its step was
// taken, and a try that is still on its way may be taken up to three seconds
// after it was sent. It claims nothing that its repeat has claimed already; a
// claim that nobody stands behind can be left only where another caller's claim
// has come and gone in between, and is listed as stuck then. The same holds for
// a server that has just taken over with a clock behind that of the last one,
// until its first answer.
package redisstore
