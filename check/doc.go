// Package check tests from outside whether an HTTP API makes repeated requests
// safe: it sends one request in the ways that real clients, networks and people
// repeat it, and tells what became of each.
//
// It promises to say no more than it saw. Each case carries how strong its
// evidence is: the effects were counted by the system under test, or the reply
// names the execution it comes from, or only bytes were compared. An API is
// called safe when every case of level MUST that could run held by one of the
// first two; what could not be told is said to be so.
//
// It does not prove that an API is safe: it looks from outside, for some
// seconds, at one operation. And it makes real requests with real effects, so it
// is for a system on which nobody's money depends.
package check
