package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
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
	// ownTurns are those of own; writeTurns are the same with SQLite, and none
	// with a server, where the size of the pool is not ours to say.
	ownTurns, writeTurns turns
}

// turns has an entry for each connection of a pool that is in use. Those who
// wait for one get it in the order in which they came, which database/sql does
// not promise: it takes any of them, and some would wait for as long as others
// come.
type turns chan struct{}

// connOf waits for a turn and returns a connection of db with what gives both
// back, once. A nil turns has none to wait for.
func (t turns) connOf(ctx context.Context, db *sql.DB) (conn *sql.Conn, giveBack func(), err error) {
	if t != nil {
		select {
		case t <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	giveBack = sync.OnceFunc(func() {
		if conn != nil {
			conn.Close() //nolint:errcheck // it may be closed.
		}
		if t != nil {
			<-t
		}
	})
	if conn, err = db.Conn(ctx); err != nil {
		giveBack()
		return nil, nil, err
	}
	return conn, giveBack, nil
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
