package sqlstore

import (
	"database/sql"
	"errors"
	"slices"
)

// Handles are the ways into one database, from [OpenSQLite], [OpenPostgreSQL]
// or [OpenMariaDB]. Business code that shares the database may use them as
// well. Inside a joined handler it writes through [Tx] alone: what it sends
// through Write there is no part of the transaction, and with SQLite waits for
// itself, since that has Write's only connection.
type Handles struct {
	// Write begins the business transactions. With SQLite it has one
	// connection, whose transactions take the write lock when they begin
	// (BEGIN IMMEDIATE), so that none fails half-way for want of it. With a
	// server it has at most sixteen; SetMaxOpenConns says otherwise.
	Write *sql.DB
	// Read has several connections, which with SQLite cannot write. With a
	// server it is Write.
	Read *sql.DB

	dialect *dialect
	// own and ownRead are for what the store writes and reads by itself. With a
	// server they are a small pool of the store's own, so that handlers that
	// hold all of Write's connections keep no claim and no heartbeat waiting
	// (R18).
	own, ownRead *sql.DB
}

// Close closes all of them.
func (h *Handles) Close() error {
	all := []*sql.DB{h.Read, h.Write, h.own, h.ownRead}
	var errs []error
	for i, db := range all {
		if !slices.Contains(all[:i], db) {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// check reports handles that no Open function made.
func (h *Handles) check() error {
	if h == nil || h.dialect == nil {
		return configError("Handles are required: those of OpenSQLite, OpenPostgreSQL or OpenMariaDB")
	}
	return nil
}
