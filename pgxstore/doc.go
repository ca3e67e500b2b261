// Package pgxstore keeps records in PostgreSQL, through jackc/pgx v5: beside
// any work (leased mode), with the reply in the business transaction (joined
// mode), or with claim and reply in it (atomic mode, for work that is SQL
// alone: one commit in all).
//
//	err := pgxstore.Migrate(ctx, url)
//	store, err := pgxstore.Open(ctx, url, pgxstore.Config{})
//	defer store.Close()
//
// What it guarantees: a claim is one round trip and one commit, a finish
// another, or none of its own in joined and atomic mode. A replay is one read,
// which writes and locks nothing. The database's clock decides leases and
// retention (clock_timestamp, which goes on inside a transaction). Claims,
// heartbeats and finishes have connections of their own, so that handlers that
// hold transactions never keep them waiting. The tables are those of sqlstore
// on PostgreSQL: processes with either may share them, and their modes may
// differ.
//
// In joined and atomic mode the handler gets its transaction from [Tx]. Run it
// in READ COMMITTED, PostgreSQL's default: under REPEATABLE READ and
// SERIALIZABLE a heartbeat that falls into the transaction makes its commit
// fail (SQLSTATE 40001).
//
// What it does not: the class is semel.Durable as long as no replica takes
// over that has not confirmed what the primary acknowledged; say so in
// [Config.Class] where one may. A server with fsync or synchronous_commit off
// counts as semel.BestEffort.
//
// Behind a pooler in transaction mode, such as PgBouncer, set
// [Config.TransactionPooler].
package pgxstore
