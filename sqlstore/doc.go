// Package sqlstore keeps records in an SQL database, beside the business data,
// so that a reply can be saved in the business transaction (joined mode). It
// goes through database/sql and imports no driver: the program that uses it
// registers one. SQLite, PostgreSQL and MariaDB are supported.
//
//	import _ "modernc.org/sqlite"
//
//	handles, err := sqlstore.OpenSQLite("sqlite", "payments.db")
//	err = sqlstore.Migrate(ctx, handles)
//	store, err := sqlstore.New(ctx, handles, sqlstore.Config{})
//
// What it guarantees: the class is semel.Durable where the database waits for
// its disk, which is asked at New; a claim is one commit, a finish another, or
// none of its own in joined mode; a replay writes nothing and locks nothing.
// The database's clock decides leases and retention, read once the lock that
// is needed is held. Several processes may share a database.
//
// In joined mode the handler gets the transaction from [Tx]. The commit writes
// the reply in it, and is refused if a later attempt has taken over.
//
// # Servers
//
// On a server the store's own statements have a small pool of their own, so
// that handlers which hold every other connection keep no claim and no
// heartbeat waiting. They run in READ COMMITTED, and the server gives them up
// before their caller does. A business transaction is the handler's, and so is
// how long its statements may wait; it is ended by the server when nothing is
// sent in it for the time that is left to the handler and ten seconds, unless
// the server has a limit of its own.
//
// What it does not: a failover to a replica that has not seen a claim loses
// that claim, and no store that is only a client can tell. The database must be
// the one that writes, not a replica of it.
//
// # SQLite
//
// Processes share the file on one host and a local disk. There is one writer
// per file: a transaction that stays open keeps every other writer waiting,
// claims and heartbeats of all keys among them; those fail with
// semel.ErrStoreUnavailable in the end, never with "busy". So call other
// services first, then open the transaction, then return.
//
// While it is open the handler's own heartbeats wait too: one that is open for
// longer than the lease lets its claim lapse. Nobody can take over before it
// ends, since that needs the writer, and its commit still counts; but every
// other request that has to write is refused meanwhile. Nor can a joined
// attempt make another one on the same file once it has opened its transaction:
// the inner one waits for the writer that the outer one has, and fails after
// five seconds, the store timeout.
package sqlstore
