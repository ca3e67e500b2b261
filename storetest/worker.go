package storetest

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Worker is a process that shares a store with the test, which may kill or
// freeze it. The test's own program becomes one, in its TestMain:
//
//	func TestMain(m *testing.M) {
//		path := os.Getenv("STORE_WORKER") // set by Harness.Process
//		if path == "" {
//			os.Exit(m.Run())
//		}
//		store, err := open(path)
//		if err == nil {
//			err = storetest.Worker{Store: store, Advance: store.Advance}.Serve(os.Stdin, os.Stdout)
//		}
//		if err != nil {
//			fmt.Fprintln(os.Stderr, err)
//			os.Exit(1)
//		}
//	}
//
// and Harness.Process returns exec.Command(os.Args[0]) with that variable in
// its Env. Nothing else may write to standard output.
type Worker struct {
	// Store is the store, opened by this process. Required.
	Store semel.Store
	// Advance moves the store's clock as Harness.Advance does, for a clock
	// that is this process's own. Nil where the clock is a server's, which the
	// test has moved already.
	Advance func(d time.Duration) error
	// Write is Business.Write, in this process. Nil if the store is no Joiner.
	Write func(ctx context.Context) error
}

// Serve answers the test until in ends, which is no error.
func (w Worker) Serve(in io.Reader, out io.Writer) error {
	server := server{Worker: w, out: gob.NewEncoder(out)}
	requests := gob.NewDecoder(in)
	for {
		var req request
		if err := requests.Decode(&req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := server.answer(req); err != nil {
			return err
		}
	}
}

// op is what a test asks of a worker.
type op uint8

const (
	opAdvance op = iota + 1
	opBegin      // every one of request.Begin, at once
	opExtend
	opFinish
	opSweep
	opWrite  // join request.Claim and write one business row
	opCommit // commit what opWrite began
	opChurn  // claim and finish one key after the other, for ever
)

// request is one line of the protocol between test and worker, in gob, which
// carries every byte of a key as it is.
type request struct {
	Op      op
	Begin   []semel.BeginParams
	Claim   semel.Claim
	Extend  semel.ExtendParams
	Finish  semel.FinishParams
	Advance time.Duration
	Limit   int
}

type response struct {
	Begun []semel.BeginResult
	Held  semel.Held
	Swept int
	Fault string // of an error; what else there is means nothing
}

// server is the state of Serve.
type server struct {
	Worker

	out   *gob.Encoder
	joint semel.Joint
}

func (w *server) answer(req request) error {
	ctx := context.Background()
	if req.Op == opChurn {
		return w.churn(ctx)
	}
	res, err := w.do(ctx, req)
	if err != nil {
		res.Fault = err.Error()
	}
	return w.out.Encode(res)
}

func (w *server) do(ctx context.Context, req request) (res response, err error) {
	switch req.Op {
	case opAdvance:
		if w.Advance != nil {
			err = w.Advance(req.Advance)
		}
	case opBegin:
		res.Begun, err = w.beginAtOnce(ctx, req.Begin)
	case opExtend:
		res.Held, err = w.Store.Extend(ctx, req.Claim, req.Extend)
	case opFinish:
		res.Held, err = w.Store.Finish(ctx, req.Claim, req.Finish)
	case opSweep:
		res.Swept, err = w.Store.Sweep(ctx, req.Limit)
	case opWrite:
		err = w.write(ctx, req.Claim)
	case opCommit:
		res.Held, err = w.joint.Commit(ctx, req.Finish)
	default:
		err = fmt.Errorf("storetest: the worker knows no request %d; are both sides of one version?", req.Op)
	}
	return res, err
}

func (w *server) beginAtOnce(ctx context.Context, all []semel.BeginParams) ([]semel.BeginResult, error) {
	begun := make([]semel.BeginResult, len(all))
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, p := range all {
		done.Go(func() { begun[i], errs[i] = w.Store.Begin(ctx, p) })
	}
	done.Wait()
	return begun, errors.Join(errs...)
}

func (w *server) write(ctx context.Context, c semel.Claim) error {
	joiner, ok := semel.As[semel.Joiner](w.Store)
	if !ok || w.Write == nil {
		return errors.New("storetest: joined mode needs Worker.Write and a Worker.Store that is a semel.Joiner")
	}
	w.joint = joiner.Join(c)
	return w.Write(w.joint.Context(ctx))
}

// churn reports each key that is done, until the process is killed.
func (w *server) churn(ctx context.Context) error {
	for i := 0; ; i++ {
		begun, err := w.Store.Begin(ctx, resuming(churnKey(i)))
		if err != nil {
			return err
		}
		held, err := w.Store.Finish(ctx, begun.Record.Claim(), toDone)
		if err != nil {
			return err
		}
		if err := w.out.Encode(response{Held: held}); err != nil {
			return err
		}
	}
}

func churnKey(i int) string { return fmt.Sprint("churned ", i) }
