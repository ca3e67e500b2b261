package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// Where a request can be when its process is killed. Its key says it.
const (
	beforeEffect = "before-its-effect"
	afterEffect  = "after-its-effect"
	beforeEnd    = "before-its-end-is-saved"
	afterEnd     = "after-its-end-is-saved"
	afterAnswer  = "after-its-answer"
)

var windowPoints = []string{beforeEffect, afterEffect, beforeEnd, afterEnd, afterAnswer}

// saved reports whether a request that was at the point is done.
func saved(point string) bool { return point == afterEnd || point == afterAnswer }

// stopping is a store whose callers are stopped before and after the end of a
// claim is saved.
type stopping struct {
	semel.Store

	at func(point, key string)
}

func (s stopping) Unwrap() semel.Store { return s.Store }

func (s stopping) between(key string, save func() (semel.Held, error)) (semel.Held, error) {
	s.at(beforeEnd, key)
	held, err := save()
	s.at(afterEnd, key)
	return held, err
}

func (s stopping) Finish(ctx context.Context, c semel.Claim, p semel.FinishParams) (semel.Held, error) {
	return s.between(c.Key, func() (semel.Held, error) { return s.Store.Finish(ctx, c, p) })
}

// stoppingJoiner is stopping in joined mode.
type stoppingJoiner struct {
	stopping
	semel.Joiner
}

func (s stoppingJoiner) Join(c semel.Claim) semel.Joint {
	return stoppingJoint{s.Joiner.Join(c), s.stopping, c.Key}
}

type stoppingJoint struct {
	semel.Joint

	store stopping
	key   string
}

func (j stoppingJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	return j.store.between(j.key, func() (semel.Held, error) { return j.Joint.Commit(ctx, p) })
}

// stoppingAtomic is stopping in atomic mode.
type stoppingAtomic struct {
	stopping
	semel.AtomicJoiner
}

func (s stoppingAtomic) BeginAtomic(ctx context.Context, p semel.BeginParams, limit time.Duration) (semel.BeginResult, semel.AtomicJoint, error) {
	res, joint, err := s.AtomicJoiner.BeginAtomic(ctx, p, limit)
	if joint != nil {
		joint = stoppingAtomicJoint{joint, s.stopping, p.Key}
	}
	return res, joint, err
}

type stoppingAtomicJoint struct {
	semel.AtomicJoint

	store stopping
	key   string
}

func (j stoppingAtomicJoint) Commit(ctx context.Context, p semel.FinishParams) (semel.Held, error) {
	return j.store.between(j.key, func() (semel.Held, error) { return j.AtomicJoint.Commit(ctx, p) })
}

func stopIn(mode semel.Mode, store semel.Store, at func(point, key string)) semel.Store {
	s := stopping{store, at}
	joiner, _ := semel.As[semel.Joiner](store)
	atomically, _ := semel.As[semel.AtomicJoiner](store)
	switch mode {
	case semel.Joined:
		return stoppingJoiner{s, joiner}
	case semel.Atomic:
		return stoppingAtomic{s, atomically}
	default:
		return s
	}
}

// httpWindow serves a shop of which each request stops for ever at the point
// that its key names, and says so on a line, with its operation id.
func httpWindow() error {
	store, mode, err := openShopStore()
	if err != nil {
		return err
	}
	var operations sync.Map // of keys
	at := func(point, key string) {
		if key == point {
			id, _ := operations.Load(key)
			fmt.Println(point, id)
			select {}
		}
	}
	s, err := openShop(stopIn(mode, store, at), shopSettings{})
	if err != nil {
		return err
	}
	h, err := protectIn(mode, s.mw, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		op, _ := semel.OperationFrom(r.Context())
		operations.Store(op.Key, op.ID)
		at(beforeEffect, op.Key)
		if err := store.sell(r.Context(), mode, op.Key); err != nil {
			panic(err) //nolint:forbidigo // the test reads it.
		}
		at(afterEffect, op.Key)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "by the first")
	})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(l, h) //nolint:errcheck,gosec // it ends with the process.
	fmt.Println("http://" + l.Addr().String())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
	}
	return in.Err()
}

// windowCases are of processes that die between one commit and the next.
func windowCases(all *httpCases) {
	for name, recovery := range map[string]semel.Recovery{"resume": semel.Resume(semel.Forever), "hold": semel.Hold()} {
		all.add("commit-window: Whatever moment a process is killed at, a retry finds the truth, "+name, func(t *testing.T, on shopWay) {
			commitWindow(t, on, recovery)
		})
	}
	all.add("job-unique: What one process runs no other starts, beside it, when it starts up, or afterwards", jobUnique)
}

func commitWindow(t *testing.T, on shopWay, recovery semel.Recovery) {
	t.Helper()
	s := newShop(t, on, shopSettings{recovery: recovery})
	groups := [][]string{windowPoints}
	if on.kind == onSQLite && on.mode == semel.Joined { // which has one writer
		groups = nil
		for _, point := range windowPoints {
			groups = append(groups, []string{point})
		}
	}
	operations := map[string]string{}
	for _, points := range groups {
		killAt(t, s, points, operations)
	}
	s.advance(t, semel.DefaultLease+time.Second)

	var again sync.Map // operation ids of what is run again
	var runs atomic.Int64
	srv := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		op, _ := semel.OperationFrom(r.Context())
		again.Store(op.Key, op.ID.String())
		runs.Add(1)
		s.created(t)(w, r)
	}))
	for _, point := range windowPoints {
		retried(t, s, srv, recovery, point)
		if id, run := again.Load(point); run && point != afterAnswer {
			assert.Equal(t, fmt.Sprint(id), operations[point], "operation id of what is run again: %s", point)
		}
	}
	assert.Equal(t, runs.Load() > 0, on.mode == semel.Atomic || recovery != semel.Hold(), "something is run again")
}

// killAt kills a process when its requests are at points, and notes their
// operation ids.
func killAt(t *testing.T, s *shop, points []string, operations map[string]string) {
	t.Helper()
	p := start(t, command("http-window", pathVariable+"="+s.address(), kindVariable+"="+s.on.String()))
	srv := server{p.line(t), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	broken := make(chan error, len(points))
	stopped := 0
	for _, point := range points {
		o := ask{}.keyed(point)
		if point == afterAnswer {
			got := send(t, srv, o)
			assert.Equal(t, got.told(), executed)
			continue
		}
		stopped++
		go func() {
			_, err := try(context.Background(), srv, o)
			broken <- err
		}()
	}
	for range stopped {
		point, id, _ := strings.Cut(p.line(t), " ")
		operations[point] = id
	}
	p.kill(t)
	for range stopped {
		assert.True(t, <-broken != nil, "the client of the dead process sees a broken connection")
	}
}

// retried sends the request of a point again, and checks what it is told and
// how many rows there are.
func retried(t *testing.T, s *shop, srv server, recovery semel.Recovery, point string) {
	t.Helper()
	o := ask{}.keyed(point)
	rows := 0 // that the first attempt has left
	if saved(point) || s.on.mode == semel.Leased && point != beforeEffect {
		rows = 1
	}
	want := executed
	switch {
	case saved(point):
		want = replayed
	case s.on.mode == semel.Atomic:
		// There is no claim without its transaction, which the server ends when
		// it has noticed.
		assert.Eventually(t, "the transaction of the dead process is over", func() bool {
			got := send(t, srv, o)
			return got.told() != "409 in-progress"
		})
		want, rows = replayed, rows+1
	case recovery == semel.Hold():
		want = "409 unknown"
	default:
		rows++ // in leased mode beside the first one: the bank knows it by its operation id
	}
	got := send(t, srv, o)
	assert.Equal(t, got.told(), want, point)
	if saved(point) {
		assert.Equal(t, got.text, "by the first", point)
	}
	assert.Equal(t, s.rows(t)[point], rows, "rows of the one %s", point)
}

// jobUnique: a process that starts up runs nothing that was left, or that still
// runs, by itself; and its own requests find what the other does.
func jobUnique(t *testing.T, on shopWay) {
	t.Helper()
	s := newShop(t, on, shopSettings{})
	one := startShop(t, s)
	first := sending(t, one.srv, ask{})
	assert.Equal(t, one.line(t), "inside")
	other := startShop(t, s)
	here := serve(t, overHTTP1, s.protect(t, semelhttp.Route{}, s.created(t)))
	for _, srv := range []server{one.srv, other.srv, here} {
		assert.Equal(t, send(t, srv, ask{}).told(), "409 in-progress")
	}
	one.tell(t, "201")
	assert.Equal(t, (<-first).told(), executed)
	for _, srv := range []server{one.srv, other.srv, here} {
		assert.Equal(t, send(t, srv, ask{}).told(), replayed)
	}
	assert.Equal(t, s.rows(t), map[string]int{"K1": 1}, "rows")
	assert.Equal(t, s.runs.Load(), int64(0), "runs in the test's process")
}
