// Package foreign puts semel check before a middleware that nobody of this
// project has written, and holds what it finds: docs/check.md shows the table. It
// is a module of its own, so that what the middleware needs is in nobody else's
// list. It is left out of the race run: to build it with the race detector takes
// longer than all that it tries.
package foreign
