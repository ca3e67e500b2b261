package integration

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/sqlstore"
)

// What docs/stores.md tells an operator to type into an SQL shell is tried
// here: the grants of PostgreSQL, those of MariaDB, and a setting.

// everything is what a service and an operator ask of a store.
type everything interface {
	semel.Store
	semel.Lister
	semel.Auditor
	semel.Eraser
	semel.SweepScheduler
}

// opening opens the store as a user, and returns with it how a handler asks
// for its transaction.
type opening func(ctx context.Context, dsn string) (s everything, tx func(context.Context) error, done func(), err error)

func openingSQL(way string) opening {
	return func(ctx context.Context, dsn string) (everything, func(context.Context) error, func(), error) {
		h, err := sqlWays[way].open(sqlWays[way].driver, dsn)
		if err != nil {
			return nil, nil, nil, err
		}
		tx := func(ctx context.Context) error {
			tx, err := sqlstore.Tx(ctx)
			if err == nil {
				_, err = tx.ExecContext(ctx, "SELECT 1")
			}
			return err
		}
		s, err := sqlstore.New(ctx, h, sqlstore.Config{})
		return s, tx, func() { h.Close() }, err
	}
}

func openingPgx(ctx context.Context, dsn string) (everything, func(context.Context) error, func(), error) {
	s, err := pgxstore.Open(ctx, dsn, pgxstore.Config{})
	if err != nil {
		return nil, nil, nil, err
	}
	tx := func(ctx context.Context) error {
		tx, err := pgxstore.Tx(ctx)
		if err == nil {
			_, err = tx.Exec(ctx, "SELECT 1")
		}
		return err
	}
	return s, tx, s.Close, nil
}

// serve does all that a service does, under keys of its own.
func (open opening) serve(ctx context.Context, dsn, key string) error {
	s, tx, done, err := open(ctx, dsn)
	if done != nil {
		defer done()
	}
	if err != nil {
		return err
	}
	begun, err := s.Begin(ctx, beginFor(key))
	if err != nil {
		return err
	}
	if _, err := s.Finish(ctx, begun.Record.Claim(), doneWith("x")); err != nil {
		return err
	}
	if err := tend(ctx, s, key); err != nil {
		return err
	}
	guard, err := semel.New(s, semel.Resume(semel.Forever), semel.Config{})
	if err != nil {
		return err
	}
	call := joined("joined " + key)
	if _, err := guard.Do(ctx, call, func(ctx context.Context) ([]byte, error) { return nil, tx(ctx) }); err != nil {
		return err
	}
	if _, ok := s.(semel.AtomicJoiner); !ok {
		return nil
	}
	call.Key, call.Mode, call.AllInTx = "atomic "+key, semel.Atomic, false
	_, err = guard.Do(ctx, call, func(ctx context.Context) ([]byte, error) { return nil, tx(ctx) })
	return err
}

// tend does what a sweeper and an operator do.
func tend(ctx context.Context, s everything, key string) error {
	if err := watch(ctx, s, key); err != nil {
		return err
	}
	if _, err := s.Erase(ctx, beginFor(key).Scope, key, semel.Audit{Actor: "ann", Reason: "asked for"}); err != nil {
		return err
	}
	if _, err := s.SweepTurn(ctx, 0); err != nil {
		return err
	}
	_, err := s.Sweep(ctx, 10)
	return err
}

// watch reads, and no more.
func watch(ctx context.Context, s everything, key string) error {
	if _, err := s.List(ctx, semel.ListParams{Limit: 10}); err != nil {
		return err
	}
	if _, err := s.Audits(ctx, beginFor(key).Scope, key); err != nil {
		return err
	}
	_, err := s.SweepLag(ctx)
	return err
}

var granting = regexp.MustCompile(`GRANT ([A-Z, ]+) ON (.+) TO shop;`)

// privileges are the statements that give user each privilege of a block, and
// those that take it back.
func privileges(block, user, database string) (give, take []string) {
	for _, m := range granting.FindAllStringSubmatch(block, -1) {
		on := strings.Replace(m[2], "shop.", database+".", 1)
		for privilege := range strings.SplitSeq(m[1], ", ") {
			give = append(give, fmt.Sprintf("GRANT %s ON %s TO %s", privilege, on, user))
			take = append(take, fmt.Sprintf("REVOKE %s ON %s FROM %s", privilege, on, user))
		}
	}
	return give, take
}

// restricted is a database with the tables, and a user who may do nothing there.
type restricted struct {
	dsn, user, database string
	say                 func(statement string) // as the owner
}

func newRestricted(t *testing.T, way string) *restricted {
	t.Helper()
	server := sqlWays[way]
	dsn, direct := server.database(t)
	h, err := server.open(server.driver, direct)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	r := &restricted{database: direct[strings.LastIndex(direct, "/")+1:]}
	r.say = func(statement string) {
		t.Helper()
		_, err := h.Write.ExecContext(t.Context(), statement)
		assert.NoError(t, err, statement)
	}
	r.database, _, _ = strings.Cut(r.database, "?")
	r.user = "shop_" + r.database
	if way == "MariaDB" {
		r.say("CREATE USER " + r.user)
		r.dsn = strings.Replace(dsn, "root@", r.user+"@", 1)
		return r
	}
	r.say("CREATE ROLE " + r.user + " LOGIN")
	address, err := url.Parse(dsn)
	assert.NoError(t, err)
	address.User = url.User(r.user)
	r.dsn = address.String()
	return r
}

// typed is the one block of SQL of the page that has a text in it.
func typed(t *testing.T, text string) string {
	t.Helper()
	others := func(block string) bool { return !strings.Contains(block, text) }
	found := slices.DeleteFunc(queries(t, "docs/stores.md"), others)
	assert.Equal(t, len(found), 1, "blocks of SQL with %s", text)
	return strings.Join(found, "")
}

func TestTheGrantsOfTheStoresPageAreEnoughAndNoneIsTooMuch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, way, block string
		open             opening
	}{
		{"PostgreSQL", "PostgreSQL", typed(t, "GRANT USAGE"), openingSQL("PostgreSQL")},
		{"PostgreSQL with pgx", "PostgreSQL", typed(t, "GRANT USAGE"), openingPgx},
		{"MariaDB", "MariaDB", typed(t, "ON shop.semel_records"), openingSQL("MariaDB")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRestricted(t, c.way)
			give, take := privileges(c.block, r.user, r.database)
			assert.True(t, len(give) >= 9, "privileges in the document, got %v", give)
			for _, statement := range give {
				r.say(statement)
			}
			assert.NoError(t, c.open.serve(t.Context(), r.dsn, "with all"))
			for i := range take {
				if strings.Contains(take[i], "SCHEMA") {
					continue // everybody has it, unless somebody took it away
				}
				r.say(take[i])
				assert.True(t, c.open.serve(t.Context(), r.dsn, fmt.Sprint("without ", i)) != nil, "it works after %s", take[i])
				r.say(give[i])
			}
			for _, statement := range take {
				if !strings.Contains(statement, "SELECT") && !strings.Contains(statement, "SCHEMA") {
					r.say(statement)
				}
			}
			reader, _, done, err := c.open(t.Context(), r.dsn)
			assert.NoError(t, err)
			defer done()
			assert.NoError(t, watch(t.Context(), reader, "with all"), "as one who may only SELECT")
		})
	}
}

func TestTheSettingOfTheStoresPageIsOne(t *testing.T) {
	t.Parallel()
	newRestricted(t, "PostgreSQL").say(typed(t, "autovacuum"))
}
