package pgxstore

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-dev/semel"
)

// What PostgreSQL says, by SQLSTATE.
const (
	stateSerialization   = "40001"
	stateDeadlock        = "40P01"
	stateAborted         = "25P02"
	stateLockUnavailable = "55P03"
	stateProtocol        = "08P01"
)

func configError(format string, args ...any) error {
	return semel.NewError(semel.CodeConfig, nil, "pgxstore: "+format, args...)
}

func misuse(format string, args ...any) error {
	return semel.NewError(semel.CodeTxMisuse, nil, "pgxstore: "+format, args...)
}

// unavailable is the one place where a database's error becomes Semel's.
func unavailable(err error) error {
	if errors.Is(err, semel.ErrStoreUnavailable) {
		return err
	}
	return semel.NewError(semel.CodeStoreUnavailable, err, "%s", semel.ErrStoreUnavailable.Text)
}

// refused says that nothing in the transaction took effect.
func refused(err error) error {
	return semel.NewError(semel.CodeCommitRefused, err, "%s", semel.ErrCommitRefused.Text)
}

// hasState reports whether the server answered with one of the SQLSTATEs.
func hasState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}

// isRefusal reports whether the server itself says that a statement, COMMIT
// among them, failed and the session goes on: the transaction is undone. A
// session that ends says less, since a COMMIT that waits for a replica is
// ended so after it took effect. Class 08 is a pooler's, about a server that
// it has lost; and what a pooler makes up has no severity of PostgreSQL's.
//
// The sqlstore, which sees no severity, knows the refusals by their classes, and
// so fewer of them: it is unknown there what became of a COMMIT that failed of a
// full disk (53100) or was canceled (57014).
func isRefusal(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && pg.Code[:2] != "08"
}
