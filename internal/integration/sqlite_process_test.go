package integration

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

const (
	stopVariable = "SEMEL_INTEGRATION_STOP"
	stopLease    = time.Minute
)

// The points of a joined payment at which a process can be killed, in order.
const (
	beforeClaim  = "before the claim's COMMIT"
	afterClaim   = "after the claim's COMMIT, unanswered"
	inWork       = "in the handler, before its transaction"
	inTx         = "in the handler, its row written"
	beforeCommit = "before the payment's COMMIT"
	afterCommit  = "after the payment's COMMIT, unanswered"
	answered     = "after the answer"
)

// sqliteJoined makes one joined payment and stops at a point: it says so, and
// goes on when it is told to. It is told to by a line on its input.
func sqliteJoined() error {
	point, in := os.Getenv(stopVariable), bufio.NewScanner(os.Stdin)
	stop := func(at string) {
		if at == point {
			fmt.Println(at)
			in.Scan()
		}
	}
	d := &tap{}
	sql.Register("stopping", d)
	s, err := openSQLite(context.Background(), "stopping", os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	defer s.handles.Close()
	var commits int // those of the claim and of the payment
	count := func(points ...string) func(string) error {
		return func(query string) error {
			if query == "COMMIT" && commits < len(points) {
				stop(points[commits])
			}
			return nil
		}
	}
	after := count(afterClaim, afterCommit)
	d.fail(count(beforeClaim, beforeCommit), func(query string) error {
		defer func() {
			if query == "COMMIT" {
				commits++
			}
		}()
		return after(query)
	})
	g, err := semel.New(s, semel.Resume(semel.Forever), semel.Config{Lease: stopLease})
	if err != nil {
		return err
	}
	res, err := g.Run(context.Background(), joined("k"), func(ctx context.Context) semel.Completion {
		stop(inWork)
		done := payOnce(ctx)
		stop(inTx)
		return done
	})
	stop(answered)
	fmt.Printf("%d %d %v\n", res.Outcome, res.Reply.Status, err)
	return nil
}

// stopped starts a joined payment and waits until it is at the point.
func stopped(t *testing.T, s *sqliteStore, point string) *process {
	t.Helper()
	p := start(t, command("sqlite-joined", pathVariable+"="+s.path, stopVariable+"="+point))
	assert.Equal(t, p.line(t), point, "where the process is")
	return p
}

// TestSQLiteProcessKilled: whatever moment a process is killed at, one payment
// is there in the end.
func TestSQLiteProcessKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point   string
		state   semel.State // that it leaves
		outcome semel.Outcome
		attempt int64
	}{
		{beforeClaim, semel.StateAbsent, semel.OutcomeExecuted, 1},
		{afterClaim, semel.StateRunning, semel.OutcomeExecuted, 2},
		{inWork, semel.StateRunning, semel.OutcomeExecuted, 2},
		{inTx, semel.StateRunning, semel.OutcomeExecuted, 2},
		{beforeCommit, semel.StateRunning, semel.OutcomeExecuted, 2},
		{afterCommit, semel.StateDone, semel.OutcomeReplayed, 1},
		{answered, semel.StateDone, semel.OutcomeReplayed, 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			s := newSQLite(t)
			stopped(t, s, c.point).kill(t)

			rec, err := s.Get(t.Context(), joined("k").Scope, "k")
			assert.NoError(t, err)
			assert.Equal(t, rec.State, c.state, "state that it left")
			g := newGuard(t, s, semel.Config{Lease: stopLease})
			if c.state == semel.StateRunning {
				res, err := g.Run(t.Context(), joined("k"), payOnce)
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, semel.OutcomeInProgress, "while the dead process's lease lives")
				assert.NoError(t, s.clock.Advance(2*stopLease))
			}
			res, err := g.Run(t.Context(), joined("k"), payOnce)
			assert.NoError(t, err)
			assert.Equal(t, res.Outcome, c.outcome)
			assert.Equal(t, res.Reply, created.Reply, "reply")
			assert.Equal(t, res.Record.Attempt, c.attempt, "attempt")
			assert.Equal(t, s.payments(t), 1, "payments")
			s.mustBeSound(t)
		})
	}
}

// mustBeSound runs SQLite's own check of the whole file.
func (s *sqliteStore) mustBeSound(t *testing.T) {
	t.Helper()
	var result string
	assert.NoError(t, s.handles.Read.QueryRow("PRAGMA integrity_check").Scan(&result))
	assert.Equal(t, result, "ok", "PRAGMA integrity_check")
}

// freeze stops the process with SIGSTOP and waits until it stands.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	assert.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil)
	assert.NoError(t, err)
	assert.True(t, status.Stopped(), "the process is stopped")
}

func (p *process) thaw(t *testing.T) {
	t.Helper()
	assert.NoError(t, p.Process.Signal(syscall.SIGCONT))
	p.tell(t, "go on")
}

func TestSQLiteProcessFrozen(t *testing.T) {
	t.Parallel()
	t.Run("before its transaction, and taken over, it shows the rival's reply and pays nothing", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		p := stopped(t, s, inWork)
		p.freeze(t)
		assert.NoError(t, s.clock.Advance(2*stopLease))
		res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), payOnce)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeExecuted)
		p.thaw(t)
		assert.Equal(t, p.line(t), fmt.Sprintf("%d 201 <nil>", semel.OutcomeReplayed), "what it says when it wakes")
		assert.Equal(t, s.payments(t), 1, "payments")
	})
	t.Run("in its transaction it keeps the writer, which is no answer to any key, and commits when it wakes", func(t *testing.T) {
		t.Parallel()
		s := newSQLite(t)
		p := stopped(t, s, inTx)
		p.freeze(t)
		assert.NoError(t, s.clock.Advance(2*stopLease))
		for _, key := range []string{"k", "another"} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			_, err := s.Begin(ctx, beginFor(key))
			cancel()
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "a claim of %q", key)
		}
		p.thaw(t)
		assert.Equal(t, p.line(t), fmt.Sprintf("%d 201 <nil>", semel.OutcomeExecuted), "what it says when it wakes")
		res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), joined("k"), payOnce)
		assert.NoError(t, err)
		assert.Equal(t, res.Outcome, semel.OutcomeReplayed)
		assert.Equal(t, s.payments(t), 1, "payments")
	})
}

// sqliteLoad makes joined payments on four goroutines, one key after the
// other, and says each that was answered, until it is killed.
func sqliteLoad() error {
	s, err := openSQLite(context.Background(), "sqlite", os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	g, err := semel.New(s, semel.Resume(semel.Forever), semel.Config{})
	if err != nil {
		return err
	}
	var out sync.Mutex
	for worker := range 4 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d-%d", os.Getpid(), worker, i)
				res, err := g.Run(context.Background(), joined(key), func(ctx context.Context) semel.Completion {
					tx, err := sqlstore.Tx(ctx)
					if err == nil {
						_, err = tx.ExecContext(ctx, insertPayment, key)
					}
					if err != nil {
						return semel.Completion{}
					}
					return created
				})
				out.Lock()
				if err == nil && res.Outcome == semel.OutcomeExecuted {
					fmt.Println(key)
				}
				out.Unlock()
			}
		}()
	}
	bufio.NewScanner(os.Stdin).Scan()
	return nil
}

func TestSQLiteProcessKilledUnderLoadLosesNothingThatWasAnswered(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	const processes, payments = 2, 60
	var acknowledged []string
	for range 3 {
		var load []*process
		for range processes {
			load = append(load, start(t, command("sqlite-load", pathVariable+"="+s.path)))
		}
		for _, p := range load {
			for range payments {
				acknowledged = append(acknowledged, p.line(t))
			}
		}
		for _, p := range load {
			p.kill(t)
		}
		s.mustBeSound(t)
	}
	for _, key := range acknowledged {
		rec, err := s.Get(t.Context(), joined(key).Scope, key)
		assert.NoError(t, err)
		assert.Equal(t, rec.State, semel.StateDone, "state of the acknowledged %q", key)
	}
	var torn int
	assert.NoError(t, s.handles.Read.QueryRow(`SELECT count(*) FROM semel_records r
		WHERE (r.state = 2) <> (SELECT count(*) = 1 FROM payments p WHERE p.key = CAST(r.idempotency_key AS TEXT))`).Scan(&torn))
	assert.Equal(t, torn, 0, "records without their payment, or payments without their record")
	assert.True(t, s.payments(t) >= len(acknowledged), "every acknowledged payment is there")
}

// sqliteRace sends every key from many goroutines at once when it is told to,
// and says how often each outcome came.
func sqliteRace() error {
	s, err := openSQLite(context.Background(), "sqlite", os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	defer s.handles.Close()
	g, err := semel.New(s, semel.Resume(semel.Forever), semel.Config{})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var outcomes [semel.OutcomeReleased + 1]int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range raceClients / raceProcesses {
			all.Go(func() {
				res, err := g.Run(context.Background(), joined(in.Text()), payOnce)
				for errors.Is(err, semel.ErrStoreUnavailable) { // so many cannot all have the writer in time on a slow machine
					res, err = g.Run(context.Background(), joined(in.Text()), payOnce)
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					fmt.Fprintln(os.Stderr, "race:", err)
				}
				outcomes[res.Outcome]++
			})
		}
		all.Wait()
		fmt.Println(strings.Trim(fmt.Sprint(outcomes), "[]"))
	}
	return in.Err()
}

const (
	raceClients   = 64
	raceProcesses = 4
)

func TestSQLiteLookUpAndClaimAreOneStepOnSeveralProcessesToo(t *testing.T) {
	t.Parallel()
	s := newSQLite(t)
	var racers []*process
	for range raceProcesses {
		p := start(t, command("sqlite-race", pathVariable+"="+s.path))
		assert.Equal(t, p.line(t), "ready")
		racers = append(racers, p)
	}
	const keys = 50
	for i := range keys {
		for _, p := range racers {
			p.tell(t, fmt.Sprintf("key-%d", i))
		}
		var outcomes [semel.OutcomeReleased + 1]int
		for _, p := range racers {
			for outcome, n := range strings.Fields(p.line(t)) {
				count, err := strconv.Atoi(n)
				assert.NoError(t, err)
				outcomes[outcome] += count
			}
		}
		assert.Equal(t, outcomes[semel.OutcomeExecuted], 1, "clients that ran key %d", i)
		answered := outcomes[semel.OutcomeExecuted] + outcomes[semel.OutcomeReplayed] + outcomes[semel.OutcomeInProgress]
		assert.Equal(t, answered, raceClients, "clients that were told: executed, replayed or in progress")
	}
	assert.Equal(t, s.payments(t), keys, "payments")
}
