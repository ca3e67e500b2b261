package sqlstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// stated is an error as the drivers for PostgreSQL make it.
type stated string

func (e stated) Error() string    { return "an error of state " + string(e) }
func (e stated) SQLState() string { return string(e) }

func TestErrorsAreReadByTheirCodes(t *testing.T) {
	t.Parallel()
	deadlock := errors.New("Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction")
	for _, c := range []struct {
		name                  string
		errors                *faults
		err                   error
		again, refused, ended bool
	}{
		{"a serialization failure", &postgres().errors, stated("40001"), true, true, false},
		{"a deadlock, wrapped", &postgres().errors, fmt.Errorf("begin: %w", stated("40P01")), true, true, false},
		{"a deferred constraint", &postgres().errors, stated("23503"), false, true, false},
		{"what a deferred trigger raises", &postgres().errors, stated("P0001"), false, true, false},
		{"a statement of which nobody knows the end", &postgres().errors, stated("40003"), false, false, false},
		{"a server that is shut down, maybe after the commit", &postgres().errors, stated("57P01"), false, false, false},
		{"a full disk", &postgres().errors, stated("53100"), false, false, false},
		{"a lost connection", &postgres().errors, errors.New("unexpected EOF"), false, false, false},
		{"a failed transaction", &postgres().errors, stated("25P02"), false, true, false},
		{"a savepoint that is not there", &postgres().errors, stated("3B001"), false, false, true},
		{"no transaction", &postgres().errors, stated("25P01"), false, true, true},
		{"MariaDB's deadlock", &mariadb().errors, deadlock, true, true, false},
		{"the same in the driver's older form, wrapped", &mariadb().errors, fmt.Errorf("begin: %w", errors.New("Error 1213: Deadlock")), true, true, false},
		{"a duplicate key", &mariadb().errors, errors.New("Error 1062 (23000): Duplicate entry 'k' for key 'PRIMARY'"), true, false, false},
		{"a lock that was waited for in vain", &mariadb().errors, errors.New("Error 1205 (HY000): Lock wait timeout exceeded"), false, false, false},
		{"a savepoint that is not there, in MariaDB", &mariadb().errors, errors.New("Error 1305 (42000): SAVEPOINT semel_joined does not exist"), false, false, true},
		{"a transaction that was committed", &mariadb().errors, errGone, false, false, true},
		{"one that was rolled back", &mariadb().errors, errRolledBack, false, true, false},
		{"a number that is only spoken of", &mariadb().errors, errors.New("the server said: Error 1213 (40001)"), false, false, false},
		{"an error without a number", &mariadb().errors, errors.New("Error in the text"), false, false, false},
	} {
		assert.Equal(t, c.errors.again(c.err), c.again, "sent again after %s", c.name)
		assert.Equal(t, c.errors.refused(c.err), c.refused, "a COMMIT refused by %s", c.name)
		assert.Equal(t, c.errors.ended(c.err), c.ended, "ended, by %s", c.name)
	}
}
