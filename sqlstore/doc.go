// Package sqlstore keeps records in an SQL database, beside the business data,
// so that a reply can be saved in the business transaction (joined mode). It
// goes through database/sql and imports no driver: the program that uses it
// registers one. SQLite is supported.
//
//	import _ "modernc.org/sqlite"
//
//	handles, err := sqlstore.OpenSQLite("sqlite", "payments.db")
//	err = sqlstore.Migrate(ctx, handles)
//	store, err := sqlstore.New(ctx, handles, sqlstore.Config{})
//
// What it guarantees: the class is semel.Durable, since a commit returns when
// it is on disk (synchronous=FULL); a claim is one commit, a finish another,
// or none of its own in joined mode; a replay reads and writes nothing. The
// database's clock decides leases and retention, read once the write lock is
// held. Several processes on one file are safe, on one host and a local disk.
//
// What it does not: SQLite has one writer per file. A transaction that stays
// open keeps every other writer waiting, claims and heartbeats of all keys
// among them; those fail with semel.ErrStoreUnavailable in the end, never with
// "busy". So call other services first, then open the transaction, then
// return.
//
// In joined mode the handler gets the transaction from [Tx]. While it is open
// the handler's own heartbeats wait too: one that is open for longer than the
// lease lets its claim lapse. Nobody can take over before it ends, since that
// needs the writer, and its commit still counts; but every other request that
// has to write is refused meanwhile. Nor can a joined attempt make another one
// on the same file once it has opened its transaction: the inner one waits for
// the writer that the outer one has, and fails after five seconds, the store
// timeout.
package sqlstore
