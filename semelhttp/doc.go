// Package semelhttp is net/http middleware that makes repeated requests safe:
// a request with an Idempotency-Key runs once, and every repeat gets the reply
// that the first one got, or an answer that says why not.
//
// [Middleware.Protect] wraps one handler as one route. Before the handler runs,
// key, scope, whole body and fingerprint are known and the key is claimed.
// While it runs its reply is recorded, and nothing of it is sent until it is
// saved. A client that hangs up changes nothing: the work goes on, and the
// retry finds the reply. docs/http.md is the contract with clients,
// docs/problems.md explains every error answer.
//
// What the package does not promise: an effect outside the store's database
// happens once only if the other side honours the operation id, which the
// handler gets from [semel.OperationFrom]. A reply that is streamed, has
// trailers or is larger than the limit is not kept; a repeat of it is told so
// and runs nothing. gRPC passes through unprotected, because its errors are not
// visible to HTTP middleware.
//
// Order matters. Outside this middleware belong authentication, CORS,
// compression and a recoverer; inside it belongs only the work.
package semelhttp
