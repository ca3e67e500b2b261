// Package client proves the client (semelclient) against a service that fails in
// every way it can: a property test of what it says, on virtual time, and a storm of
// processes that are killed. It is tests only.
package client
