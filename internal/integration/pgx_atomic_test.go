package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/pgxstore"
	"github.com/semel-dev/semel/semelhttp"
)

// TestPgxCommitsPerPayment counts the commits in the log of a server of its
// own.
func TestPgxCommitsPerPayment(t *testing.T) {
	t.Parallel()
	server := services.NewPostgres(t)
	s := newPgxOn(t, server, pgxConfig{})
	s.exec(t, "CREATE EXTENSION pg_walinspect SCHEMA semel_test")
	s.exec(t, "ALTER SYSTEM SET autovacuum = off")
	s.exec(t, "SELECT pg_reload_conf()")
	g := newGuard(t, s, semel.Config{})
	commits := func(f func()) int64 {
		t.Helper()
		s.exec(t, "CREATE TABLE IF NOT EXISTS semel_test.place (at pg_lsn)")
		s.exec(t, "DELETE FROM semel_test.place")
		s.exec(t, "INSERT INTO semel_test.place VALUES (pg_current_wal_insert_lsn())")
		f()
		// The last of those of the test's own comes after the place.
		return s.number(t, `SELECT count(*) FROM semel_test.place, semel_test.pg_get_wal_records_info(at, pg_current_wal_flush_lsn())
			WHERE resource_manager = 'Transaction' AND record_type LIKE 'COMMIT%'`) - 1
	}
	const payments = 20
	for _, c := range []struct {
		mode    semel.Mode
		work    func(context.Context) semel.Completion
		commits int64
	}{
		{semel.Atomic, pgxPayOnce, payments},
		{semel.Joined, pgxPayOnce, 2 * payments},
		{semel.Leased, notPaying, 2 * payments},
	} {
		pay := func(want semel.Outcome) func() {
			return func() {
				for i := range payments {
					res, err := g.Run(t.Context(), pgxCall(fmt.Sprint(c.mode, i), c.mode), c.work)
					assert.NoError(t, err)
					assert.Equal(t, res.Outcome, want)
				}
			}
		}
		assert.Equal(t, commits(pay(semel.OutcomeExecuted)), c.commits, c.mode, "commits of", payments, "payments")
		assert.Equal(t, commits(pay(semel.OutcomeReplayed)), 0, c.mode, "commits of their replays")
	}
}

// TestPgxAtomicDuplicates: while the first request holds its transaction open
// the others are answered at once.
func TestPgxAtomicDuplicates(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	mw, err := semelhttp.New(newGuard(t, s, semel.Config{}), func(*http.Request) (string, error) { return "customer", nil }, semelhttp.Config{})
	assert.NoError(t, err)
	opened, goOn := make(chan struct{}), make(chan struct{})
	h, err := mw.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := pgxPayOne(r.Context()); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // the recorder is one; it sends nothing before the commit.
		close(opened)
		<-goOn
	}), semelhttp.Route{Name: "pay", Mode: semel.Atomic})
	assert.NoError(t, err)
	srv := httptest.NewServer(h)
	defer srv.Close()
	post := func(body string) (int, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/", strings.NewReader(body))
		assert.NoError(t, err)
		req.Header.Set("Idempotency-Key", "k1")
		res, err := srv.Client().Do(req)
		assert.NoError(t, err)
		defer res.Body.Close()
		return res.StatusCode, res.Header
	}
	first := make(chan int, 1)
	go func() {
		status, _ := post("a")
		first <- status
	}()
	<-opened
	for range 20 { // who waited for the first would be told that the store is not there
		for _, body := range []string{"a", "another request"} {
			status, header := post(body)
			assert.Equal(t, status, http.StatusConflict)
			assert.Equal(t, header.Get("Retry-After"), "1")
			assert.Equal(t, header.Get("Semel-Outcome"), "in-progress")
		}
	}
	close(goOn)
	assert.Equal(t, <-first, http.StatusCreated)
	status, header := post("a")
	assert.Equal(t, status, http.StatusCreated)
	assert.Equal(t, header.Get("Idempotent-Replayed"), "true")
	status, _ = post("another request")
	assert.Equal(t, status, http.StatusUnprocessableEntity)
	assert.Equal(t, s.payments(t), 1)
}

// pgxAtomic is a process that makes one atomic payment, says when its row is
// written, and goes on when it is told to.
func pgxAtomic() error {
	s, err := pgxstore.Open(context.Background(), os.Getenv(pathVariable), pgxstore.Config{Hooks: pgxHooks})
	if err != nil {
		return err
	}
	g, err := semel.New(s, semel.Resume(semel.Forever), semel.Config{})
	if err != nil {
		return err
	}
	res, err := g.Run(context.Background(), pgxCall("k", semel.Atomic), func(ctx context.Context) semel.Completion {
		c := pgxPayOnce(ctx)
		fmt.Println(inTx)
		bufio.NewScanner(os.Stdin).Scan()
		return c
	})
	fmt.Println(res.Outcome, err == nil)
	return nil
}

// inAtomic starts such a process and waits until its row is written.
func inAtomic(t *testing.T, s *pgxStore) *process {
	t.Helper()
	p := start(t, command("pgx-atomic", pathVariable+"="+s.url))
	assert.Equal(t, p.line(t), inTx, "where the process is")
	return p
}

// idleFor1s has the server end transactions that are left idle for a second.
const idleFor1s = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = ''1s''', current_database()); END $$`

func TestPgxAtomicProcess(t *testing.T) {
	t.Parallel()
	pay := func(t *testing.T, s *pgxStore) semel.Result {
		t.Helper()
		res, err := newGuard(t, s, semel.Config{}).Run(t.Context(), pgxCall("k", semel.Atomic), pgxPayOnce)
		assert.NoError(t, err)
		return res
	}
	t.Run("killed leaves nothing, and nobody waits for a lease", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		p := inAtomic(t, s)
		assert.Equal(t, pay(t, s).Outcome, semel.OutcomeInProgress, "while it lives")
		p.kill(t)
		var res semel.Result
		assert.Eventually(t, "a repeat runs", func() bool {
			res = pay(t, s)
			return res.Outcome == semel.OutcomeExecuted
		})
		assert.Equal(t, res.Record.Attempt, 1, "attempt")
		assert.Equal(t, s.payments(t), 1)
	})
	t.Run("frozen loses its transaction to the server's limit, and what it did when it wakes", func(t *testing.T) {
		t.Parallel()
		s := newPgx(t, pgxConfig{})
		s.exec(t, idleFor1s)
		p := inAtomic(t, s)
		p.freeze(t)
		assert.Eventually(t, "a repeat runs", func() bool { return pay(t, s).Outcome == semel.OutcomeExecuted })
		p.thaw(t)
		assert.Equal(t, p.line(t), fmt.Sprint(semel.OutcomeUnknown, false), "what it says when it wakes")
		assert.Equal(t, pay(t, s).Outcome, semel.OutcomeReplayed)
		assert.Equal(t, s.payments(t), 1)
	})
}

func TestPgxAtomicKeepsItsRowsFromOthersUntilTheCommit(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{})
	s.exec(t, "CREATE UNIQUE INDEX ON payments (key)")
	_, err := runPgx(t, s, semel.Atomic, func(ctx context.Context, tx *pgxstore.JoinedTx) semel.Completion {
		assert.NoError(t, pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
			_, err := part.Exec(ctx, pgxPay, "once")
			return err
		}))
		assert.Equal(t, s.payments(t), 0, "rows that others see")
		assert.Equal(t, s.stateOf(t), semel.StateAbsent, "state that others see")
		return created
	})
	assert.NoError(t, err)
	assert.Equal(t, s.payments(t), 1)
}

// TestPgxDuplicatesNeedNoTransaction: while handlers have every connection for
// business transactions, a request of a key that is at work or done is answered
// all the same.
func TestPgxDuplicatesNeedNoTransaction(t *testing.T) {
	t.Parallel()
	for way, cfg := range map[string]pgxConfig{
		"directly":          {Config: pgxstore.Config{MaxTxConns: 1}},
		"through PgBouncer": {pgbouncer: true, Config: pgxstore.Config{MaxTxConns: 1, TransactionPooler: true}},
	} {
		for _, mode := range []semel.Mode{semel.Atomic, semel.Joined} {
			t.Run(mode.String()+" "+way, func(t *testing.T) {
				t.Parallel()
				s := newPgx(t, cfg)
				g := newGuard(t, s, semel.Config{StoreTimeout: time.Minute})
				run := func(key, request string, work func(context.Context) semel.Completion) semel.Result {
					call := pgxCall(key, mode)
					call.Fingerprint = semel.FingerprintOf([]byte(request))
					res, err := g.Run(t.Context(), call, work)
					assert.NoError(t, err)
					return res
				}
				never := func(context.Context) semel.Completion {
					t.Error("a duplicate runs")
					return semel.Completion{}
				}
				assert.Equal(t, run("done", "a", pgxPayOnce).Outcome, semel.OutcomeExecuted)
				running := run("running", "a", func(ctx context.Context) semel.Completion {
					c := pgxPayOnce(ctx)
					began := time.Now()
					assert.Equal(t, run("running", "a", never).Outcome, semel.OutcomeInProgress, "of the one that runs")
					assert.Equal(t, run("done", "a", never).Outcome, semel.OutcomeReplayed, "of one that is done")
					assert.Equal(t, run("done", "another", never).Outcome, semel.OutcomeKeyReused, "another request")
					assert.True(t, time.Since(began) < time.Minute/2, "nothing waits for the transaction to end")
					return c
				})
				assert.Equal(t, running.Outcome, semel.OutcomeExecuted)
				assert.Equal(t, s.payments(t), 2)
			})
		}
	}
}

// TestPgxAtomicClaimWaitsForATransaction: a key that is new waits until one is
// free, and looks meanwhile whether it is new still.
func TestPgxAtomicClaimWaitsForATransaction(t *testing.T) {
	t.Parallel()
	s := newPgx(t, pgxConfig{Config: pgxstore.Config{MaxConns: 1, MaxTxConns: 1}})
	g := newGuard(t, s, semel.Config{StoreTimeout: time.Minute})
	waiting := make(chan semel.Result, 1)
	wait := func() {
		res, err := g.Run(t.Context(), pgxCall("waits", semel.Atomic), pgxPayOnce)
		if err != nil {
			t.Error(err)
		}
		waiting <- res
	}
	for _, c := range []struct {
		name      string
		meanwhile func()
		want      semel.Outcome
	}{
		{"it is claimed in another way, and not kept waiting for the transaction", func() {
			res, err := s.Begin(t.Context(), beginFor("waits"))
			assert.NoError(t, err)
			assert.Equal(t, (<-waiting).Outcome, semel.OutcomeInProgress)
			_, err = s.Finish(t.Context(), res.Record.Claim(), semel.FinishParams{To: semel.StateReleased, Retention: time.Hour})
			assert.NoError(t, err)
			waiting <- semel.Result{}
		}, 0},
		{"the transaction ends, and it runs", func() {}, semel.OutcomeExecuted},
	} {
		_, err := g.Run(t.Context(), pgxCall(c.name, semel.Atomic), func(ctx context.Context) semel.Completion {
			began := s.number(t, `SELECT count(pg_sleep(0.01)) + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
			go wait()
			assert.Eventually(t, "it has looked, and waits", func() bool {
				return s.number(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'semel'
					AND state = 'idle' AND query NOT LIKE '%pg_locks%' AND query_start > to_timestamp($1::bigint / 1e6)`, began) == 1
			})
			c.meanwhile()
			return pgxPayOnce(ctx)
		})
		assert.NoError(t, err)
		assert.Equal(t, (<-waiting).Outcome, c.want, c.name)
	}
}
