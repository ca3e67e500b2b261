// Package services starts the servers that the stores are tested on:
// PostgreSQL, PgBouncer, MariaDB, Redis and a Redis Cluster of six nodes. Each
// is a private instance on a free loopback port, keeps its data in a temporary
// folder, and is as durable as its makers can have it: what it acknowledged is
// still there after Kill and Start.
//
// SharedPostgres and its like return the instance that all tests of a process
// share, started when the first of them asks; a test takes a database of its
// own there. NewPostgres and its like start an instance for one test, which
// may kill it. A test is skipped where the program is not installed.
//
// Nothing outlives the process, however that ends: a shell waits for it, kills
// its servers and removes their folders. Main does the same at the end of a
// test program and waits until it is done.
//
// The servers listen on the loopback interface alone and ask for no password:
// every user of this machine reaches them.
package services
