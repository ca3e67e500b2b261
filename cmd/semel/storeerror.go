package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/rueidis"
)

// What the user of a database server can mend.
const (
	noLogin    = "the server does not let this user in; look at the user and the password in --store"
	noDatabase = "there is no such database on the server, and it is not made here; make it first"
	noRights   = "the user may not do what has to be done in the database; let its owner grant it, or name another one"
	noServer   = "no server can be reached there; is it up, and are host and port in --store right?"
)

// mendable are the servers' own codes of it: SQLSTATEs of PostgreSQL, numbers
// of MariaDB and words of Redis.
var mendable = map[string]string{
	"28P01": noLogin, "28000": noLogin, "1045": noLogin, "1698": noLogin, "WRONGPASS": noLogin, "NOAUTH": noLogin,
	"3D000": noDatabase, "1049": noDatabase,
	"42501": noRights, "1044": noRights, "1142": noRights, "NOPERM": noRights,
}

// explained says what to do about the error of a server, if that is known.
func explained(err error) error {
	if err == nil {
		return nil
	}
	what := mendable[serverCode(err)]
	if what == "" && unreachable(err) {
		what = noServer
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// serverCode is the code with which a server has refused something, or empty.
func serverCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return strconv.Itoa(int(e.Number))
	}
	if e, ok := errors.AsType[*rueidis.RedisError](err); ok {
		word, _, _ := strings.Cut(e.Error(), " ")
		return word
	}
	return ""
}

// unreachable reports whether nobody has answered.
func unreachable(err error) bool {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return true
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	return unknown || errors.Is(err, context.DeadlineExceeded)
}
