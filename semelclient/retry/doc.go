// Package retry says how long to wait before a request is sent again, and
// whether it may be. It knows no HTTP and starts nothing.
//
// [Policy] gives waits with full jitter: the bound doubles with each try and is
// capped, then a moment between nothing and the bound is drawn, so that callers
// who failed together do not come back together.
//
// [Budget] is shared by all callers of one host. In any minute it allows a fifth as
// many retries as there were requests, and never fewer than a small reserve, so
// that retries cannot keep down a host that is trying to get up. What the host
// answers is given back, so that it does not slow down one that is up.
package retry
