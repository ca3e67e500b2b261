package integration

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// runJoinedOn runs work as a joined payment whose effects are all in its
// transaction.
func runJoinedOn(t *testing.T, s *sqlStore, work func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion) (semel.Result, error) {
	t.Helper()
	return newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), func(ctx context.Context) semel.Completion {
		return work(ctx, mustTx(ctx, t))
	})
}

// mustExecute executes a statement that must succeed.
func mustExecute(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx, statement string, args ...any) {
	t.Helper()
	_, err := tx.ExecContext(ctx, statement, args...)
	assert.NoError(t, err, statement)
}

// mustBeReleased checks what is left of an attempt of which nothing took
// effect, and that the key can be used again.
func mustBeReleased(t *testing.T, s *sqlStore, res semel.Result, err error) {
	t.Helper()
	assert.ErrorIs(t, err, semel.ErrCommitRefused, "it is known that nothing took effect")
	assert.Equal(t, res.Outcome, semel.OutcomeReleased)
	assert.Equal(t, s.payments(t), 0, "payments")
	res, err = runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
		mustExecute(ctx, t, tx, s.server.insert, "again")
		return created
	})
	assert.NoError(t, err)
	assert.Equal(t, res.Outcome, semel.OutcomeExecuted, "the next attempt")
	assert.Equal(t, s.payments(t), 1, "payments of the next attempt")
}

// everyUse is each way to send a statement.
func everyUse(ctx context.Context, tx *sqlstore.JoinedTx, prepared *sql.Stmt, insert string) map[string]func() error {
	return map[string]func() error{
		"Exec": func() error {
			_, err := tx.ExecContext(ctx, insert, "after")
			return err
		},
		"a query": func() error {
			rows, err := tx.QueryContext(ctx, insert+" RETURNING id", "after")
			return lastError(rows, err)
		},
		"a query for one row": func() error { return tx.QueryRowContext(ctx, insert+" RETURNING id", "after").Scan(new(int)) },
		"Exec of what was prepared before": func() error {
			_, err := prepared.ExecContext(ctx, "after")
			return err
		},
		"Exec of what is prepared now": func() error {
			stmt, err := tx.PrepareContext(ctx, insert)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx, "after")
			return err
		},
	}
}

// deadlocked makes the transaction the victim of a deadlock, in a statement
// that is sent by send.
func deadlocked(ctx context.Context, t *testing.T, s *sqlStore, tx *sqlstore.JoinedTx, send func(query string) error) {
	t.Helper()
	mustExecute(ctx, t, tx, "UPDATE accounts SET n = n + 1 WHERE name = 'a'")
	other, err := s.test.BeginTx(context.Background(), nil)
	assert.NoError(t, err)
	defer other.Rollback()                                                // lets go of what the victim waited for
	_, err = other.Exec("UPDATE accounts SET n = n + 1 WHERE name > 'a'") // more than the victim has written
	assert.NoError(t, err)
	victim := make(chan error, 1)
	go func() { victim <- send("UPDATE accounts SET n = n + 1 WHERE name = 'b'") }()
	assert.Eventually(t, "the handler waits", func() bool { return s.waiting(t) > 0 })
	_, err = other.Exec("UPDATE accounts SET n = n + 1 WHERE name = 'a'")
	assert.NoError(t, err, "the other transaction is not the victim")
	assert.True(t, <-victim != nil, "the handler is told of the deadlock")
}

func newAccounts(t *testing.T, way string) *sqlStore {
	t.Helper()
	s := newSQL(t, way)
	s.exec(t, "CREATE TABLE accounts (name VARCHAR(10) NOT NULL PRIMARY KEY, n INT NOT NULL)")
	s.exec(t, "INSERT INTO accounts VALUES ('a', 0), ('b', 0), ('c', 0), ('d', 0), ('e', 0)")
	return s
}

// MariaDB rolls the whole transaction back after a deadlock, and would commit
// what follows one by one (R12).
func TestMariaDBJoinedTxIsPoisonedByADeadlock(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(ctx context.Context, tx *sqlstore.JoinedTx, query string) error{
		"in Exec": func(ctx context.Context, tx *sqlstore.JoinedTx, query string) error {
			_, err := tx.ExecContext(ctx, query)
			return err
		},
		"in a prepared Exec": func(ctx context.Context, tx *sqlstore.JoinedTx, query string) error {
			stmt, err := tx.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.ExecContext(ctx)
			return err
		},
		"amid the rows of a query": func(ctx context.Context, tx *sqlstore.JoinedTx, _ string) error {
			rows, err := tx.QueryContext(ctx, "SELECT n FROM accounts ORDER BY name FOR UPDATE")
			return lastError(rows, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccounts(t, "MariaDB")
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "before")
				prepared, err := tx.PrepareContext(ctx, s.server.insert)
				assert.NoError(t, err)
				defer prepared.Close()
				deadlocked(ctx, t, s, tx, func(query string) error { return send(ctx, tx, query) })
				for use, f := range everyUse(ctx, tx, prepared, s.server.insert) {
					err := f()
					if err == nil {
						t.Errorf("%s took effect outside the transaction", use)
						continue
					}
					assert.Contains(t, err.Error(), "the transaction is gone", use)
				}
				return created // as if nothing had happened
			})
			mustBeReleased(t, s, res, err)
		})
	}
	t.Run("and not by a lock that was waited for in vain (1205), which undoes one statement", func(t *testing.T) {
		t.Parallel()
		s := newAccounts(t, "MariaDB")
		other, err := s.test.BeginTx(context.Background(), nil)
		assert.NoError(t, err)
		defer other.Rollback() //nolint:errcheck // it has nothing to do.
		_, err = other.Exec("UPDATE accounts SET n = 1 WHERE name = 'b'")
		assert.NoError(t, err)
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, "SET SESSION innodb_lock_wait_timeout = 1")
			mustExecute(ctx, t, tx, s.server.insert, "before")
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET n = n + 1 WHERE name = 'b'")
			assert.Contains(t, err.Error(), "1205")
			mustExecute(ctx, t, tx, s.server.insert, "after")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 2)
	})
}

// A procedure may commit. Nobody can say then what of the work is there.
func TestMariaDBTransactionThatAProcedureCommitted(t *testing.T) {
	t.Parallel()
	const commits = "CREATE PROCEDURE pay() BEGIN INSERT INTO payments (payer) VALUES ('by procedure'); COMMIT; END"
	for name, c := range map[string]struct {
		procedure string
		after     func(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx) // that the handler does next
		ends      semel.Completion
	}{
		"is found when the handler succeeds": {commits, func(context.Context, *testing.T, *sqlstore.JoinedTx) {}, created},
		"is found when the handler fails":    {commits, func(context.Context, *testing.T, *sqlstore.JoinedTx) {}, semel.Completion{}},
		"takes no statement more": {commits, func(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx) {
			_, err := tx.ExecContext(ctx, "INSERT INTO payments (payer) VALUES ('alone')")
			assert.Contains(t, err.Error(), "the transaction is gone")
		}, created},
		"is found although another has begun": {
			"CREATE PROCEDURE pay() BEGIN INSERT INTO payments (payer) VALUES ('by procedure'); COMMIT; START TRANSACTION; END",
			func(context.Context, *testing.T, *sqlstore.JoinedTx) {}, created,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, "MariaDB")
			s.exec(t, c.procedure)
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, "CALL pay()")
				c.after(ctx, t, tx)
				return c.ends
			})
			assert.True(t, res.Outcome != semel.OutcomeReleased && !errors.Is(err, semel.ErrCommitRefused),
				"it is not said to have had no effect: outcome %v, error %v", res.Outcome, err)
			assert.Equal(t, s.payments(t), 1, "what the procedure committed")
			rec, err := s.Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, err)
			assert.True(t, rec.State == semel.StateRunning || rec.State == semel.StateUnknown, "state: %v", rec.State)
		})
	}
	t.Run("is no other than one that a procedure has left alone", func(t *testing.T) {
		t.Parallel()
		s := newSQL(t, "MariaDB")
		s.exec(t, "CREATE PROCEDURE pay() INSERT INTO payments (payer) VALUES ('by procedure')")
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, "CALL pay()")
			mustExecute(ctx, t, tx, s.server.insert, "after")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 2)
	})
}

func TestServersJoinedTxRefusesStatementsThatWouldEndIt(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, s.server.insert, "before")
			for _, statement := range append([]string{"COMMIT", "BEGIN", "START TRANSACTION", "/* */ ROLLBACK"}, s.server.ends...) {
				_, err := tx.ExecContext(ctx, statement)
				assert.ErrorIs(t, err, semel.ErrTxMisuse, statement)
			}
			return semel.Completion{}
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0, "payments, so that none of them had an effect")
	})
}

// PostgreSQL answers COMMIT in a failed transaction with ROLLBACK, and without
// an error.
func TestPostgresTransactionThatHasFailed(t *testing.T) {
	t.Parallel()
	const twice = "INSERT INTO payments (id, payer) OVERRIDING SYSTEM VALUE VALUES (7, 'a'), (7, 'b')"
	for _, way := range []string{"PostgreSQL", "PostgreSQL behind PgBouncer"} {
		t.Run("is never taken for committed, by "+way, func(t *testing.T) {
			t.Parallel()
			s := newSQL(t, way)
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "before")
				_, err := tx.ExecContext(ctx, twice)
				assert.Contains(t, err.Error(), "23505")
				_, err = tx.ExecContext(ctx, s.server.insert, "after")
				assert.Contains(t, err.Error(), "25P02")
				return created
			})
			mustBeReleased(t, s, res, err)
		})
	}
	t.Run("keeps the reply of a 4xx all the same (R13)", func(t *testing.T) {
		t.Parallel()
		s := newSQL(t, "PostgreSQL")
		conflict := semel.Completion{Verdict: semel.VerdictKeep, Undo: true, Reply: semel.Reply{Status: 409}}
		for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "before")
				_, err := tx.ExecContext(ctx, twice)
				assert.True(t, err != nil, "the conflict is reported")
				return conflict
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, want)
			assert.Equal(t, res.Reply.Status, 409)
		}
		assert.Equal(t, s.payments(t), 0)
	})
	t.Run("goes on from a savepoint", func(t *testing.T) {
		t.Parallel()
		s := newSQL(t, "PostgreSQL")
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, s.server.insert, "before")
			mustExecute(ctx, t, tx, "SAVEPOINT mine")
			_, err := tx.ExecContext(ctx, twice)
			assert.True(t, err != nil, "the conflict is reported")
			mustExecute(ctx, t, tx, "ROLLBACK TO mine")
			mustExecute(ctx, t, tx, s.server.insert, "after")
			return created
		})
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 2)
	})
	t.Run("at COMMIT, by a deferred constraint, is known to be undone", func(t *testing.T) {
		t.Parallel()
		s := newSQL(t, "PostgreSQL")
		s.exec(t, "ALTER TABLE payments ADD CONSTRAINT once UNIQUE (payer) DEFERRABLE INITIALLY DEFERRED")
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, s.server.insert, "twice")
			mustExecute(ctx, t, tx, s.server.insert, "twice")
			return created
		})
		mustBeReleased(t, s, res, err)
	})
	t.Run("by a serialization failure at COMMIT is known to be undone", func(t *testing.T) {
		t.Parallel()
		s := newAccounts(t, "PostgreSQL")
		var err error
		s.Store, err = sqlstore.New(t.Context(), s.handles, sqlstore.Config{Isolation: sql.LevelSerializable})
		assert.NoError(t, err)
		const sum, write = "SELECT sum(n) FROM accounts", "UPDATE accounts SET n = n + 1 WHERE name = $1"
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, s.server.insert, "before")
			mustExecute(ctx, t, tx, sum)
			mustExecute(ctx, t, tx, write, "a")
			other, err := s.test.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
			assert.NoError(t, err)
			for _, statement := range []string{sum, "UPDATE accounts SET n = n + 1 WHERE name = 'b'"} {
				_, err = other.Exec(statement)
				assert.NoError(t, err)
			}
			assert.NoError(t, other.Commit())
			return created
		})
		assert.ErrorIs(t, err, semel.ErrCommitRefused)
		assert.Equal(t, res.Outcome, semel.OutcomeReleased)
		assert.Equal(t, s.payments(t), 0)
	})
}

func TestServersConnectionThatIsLostInTheHandler(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
			mustExecute(ctx, t, tx, s.server.insert, "before")
			s.killSession(ctx, t, tx)
			for range 2 {
				_, err := tx.ExecContext(ctx, s.server.insert, "after")
				assert.True(t, err != nil, "a statement after the connection was lost fails")
			}
			return created
		})
		mustBeReleased(t, s, res, err)
	})
}

// killSession ends the connection of a transaction on the server.
func (s *sqlStore) killSession(ctx context.Context, t *testing.T, tx *sqlstore.JoinedTx) {
	t.Helper()
	var id int64
	assert.NoError(t, tx.QueryRowContext(ctx, s.server.session).Scan(&id))
	_, err := s.test.Exec(s.server.kill(id))
	assert.NoError(t, err)
}

func TestServersCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	t.Run("that took effect is found by its token", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			w, name := newWire(t, s.server.driver)
			s = s.by(t, name)
			w.fail(nil, func(statement string) error {
				if statement == "COMMIT" {
					return errors.New("the answer is lost")
				}
				return nil
			})
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "paid")
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
			assert.Equal(t, s.payments(t), 1)
		})
	})
	t.Run("that never arrived is not said to have had no effect, and is resumed", func(t *testing.T) {
		t.Parallel()
		onServers(t, func(t *testing.T, s *sqlStore) {
			w, name := newWire(t, s.server.driver)
			cut := s.by(t, name)
			var id int64
			w.fail(func(statement string) error {
				if statement == "COMMIT" && id != 0 {
					_, err := s.test.Exec(s.server.kill(id))
					id = 0
					return err
				}
				return nil
			}, nil)
			_, err := runJoinedOn(t, cut, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "paid")
				assert.NoError(t, tx.QueryRowContext(ctx, s.server.session).Scan(&id))
				return created
			})
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.True(t, !errors.Is(err, semel.ErrCommitRefused), "nobody knows yet")
			assert.Eventually(t, "the server has undone it", func() bool { return s.payments(t) == 0 })
			s.advance(t, time.Hour)
			res, err := runJoinedOn(t, s, func(ctx context.Context, tx *sqlstore.JoinedTx) semel.Completion {
				mustExecute(ctx, t, tx, s.server.insert, "paid")
				return created
			})
			assert.NoError(t, err)
			assert.Equal(t, res.Record.Attempt, 2, "attempt")
			assert.Equal(t, s.payments(t), 1)
		})
	})
}

// Handlers that hold every business connection keep no claim and no heartbeat
// waiting (R18).
func TestServersOwnPoolIsNotTheBusinessPool(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		s.handles.Write.SetMaxOpenConns(1)
		rec := begun(t, s, beginFor("k"))
		joint := s.Join(rec.Claim())
		defer joint.Rollback() //nolint:errcheck // after Commit it has nothing to do.
		assert.NoError(t, s.server.pay(joint.Context(t.Context())))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // and not for ever
		defer cancel()
		_, err := s.Begin(ctx, beginFor("another"))
		assert.NoError(t, err)
		held, err := s.Extend(ctx, rec.Claim(), semel.ExtendParams{Lease: time.Minute})
		assert.NoError(t, err)
		assert.Equal(t, held.Status, semel.HeldYes)
		held, err = joint.Commit(ctx, doneWith("x"))
		assert.NoError(t, err)
		assert.Equal(t, held.Status, semel.HeldYes)
	})
}

// A caller who owns the transaction has the reply saved in it (semel.Bind).
func TestServersFinishInATransactionOfTheCallers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		bound, err := semel.Bind[*sql.Tx](newGuard(t, s, semel.Config{}))
		assert.NoError(t, err)
		run := func(commit bool) semel.Result {
			tx, err := s.handles.Write.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			assert.NoError(t, err)
			defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do.
			res, err := bound.Join(t.Context(), tx, joined("k"), func(ctx context.Context) ([]byte, error) {
				_, err := tx.ExecContext(ctx, s.server.insert, "paid")
				return []byte("paid"), err
			})
			assert.NoError(t, err)
			switch {
			case commit && res.Ran:
				assert.NoError(t, tx.Commit())
			case res.Ran:
				assert.NoError(t, tx.Rollback())
				assert.NoError(t, bound.RolledBack(t.Context(), res))
			}
			return res
		}
		assert.Equal(t, run(false).Outcome, semel.OutcomeExecuted)
		assert.Equal(t, s.payments(t), 0, "payments, rolled back")
		assert.Equal(t, run(true).Record.Attempt, 2, "attempt")
		res := run(true)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
		assert.Equal(t, string(res.Reply.Body), "paid")
		assert.Equal(t, s.payments(t), 1, "payments")
	})
}

func TestServersFinishInATransactionThatCannotCommit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *sqlStore) {
		rec := begun(t, s, beginFor("k"))
		tx, err := s.handles.Write.BeginTx(t.Context(), nil)
		assert.NoError(t, err)
		_, err = tx.Exec(s.server.insert, "paid")
		assert.NoError(t, err)
		release := s.hold(t, rec.Scope, rec.Key)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.FinishTx(ctx, tx, rec.Claim(), doneWith("x"))
		assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
		assert.True(t, tx.Commit() != nil, "after an error of FinishTx nothing can be committed")
		release()
		assert.Equal(t, s.payments(t), 0, "payments")
	})
}
