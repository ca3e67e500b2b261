// Package integration tests Semel with real drivers, real files, real servers
// and real processes, which are killed and frozen. It is a module of its own,
// so that none of what it needs becomes a requirement of the library.
package integration
