package storetest

import (
	"encoding/gob"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

const (
	processes = 4
	// answerWithin is how long a worker may take before it is given up.
	answerWithin = time.Minute
)

var processChapters = []chapter{
	{name: "several processes", rules: []rule{
		{name: "crash point 3: of sixty-four first Begins in four processes one claims", needs: Processes, test: firstBeginsOfProcesses},
		{name: "crash point 4: of sixty-four takeovers in four processes one is the next attempt", needs: Processes, test: takeoversOfProcesses},
		{name: "crash point 12: sweepers in four processes remove each record once", needs: Processes, test: sweepersOfProcesses},
		{name: "crash point 5: a claim outlives its killed owner: busy, then Unknown under Hold, run again under Resume", needs: Processes, test: ownerKilled},
		{name: "crash point 5: whatever moment a worker is killed at, all it had finished is kept, and the rest can be resumed", needs: Processes, test: churnKilled},
		{name: "crash point 7: a frozen owner that wakes after a rival is done can neither extend nor finish", needs: Processes, test: frozenSuperseded},
		{name: "crash point 8: a frozen owner that wakes and was not taken over finishes", needs: Processes, test: frozenHeld},
		{name: "crash point 9: a Finish whose sender was killed before the answer is there once, and held when sent again", needs: Processes, test: finisherKilled},
		{name: "a worker killed inside its joined transaction leaves neither rows nor reply", needs: Processes | Joining, test: joinedKilled},
		{name: "crash point 7: a joined owner that wakes after a rival is done leaves no rows", needs: Processes | Joining, test: joinedFrozen},
	}},
}

// process is a worker as the test sees it.
type process struct {
	cmd *exec.Cmd
	out *gob.Encoder
	in  *gob.Decoder
}

// start starts a worker, its clock where the test's is.
func (s *subject) start() *process {
	s.Helper()
	cmd := s.h.Process(s.T, s.store)
	if cmd.Stderr == nil {
		cmd.Stderr = s.Output()
	}
	in, err := cmd.StdinPipe()
	assert.NoError(s, err, "standard input of the worker")
	out, err := cmd.StdoutPipe()
	assert.NoError(s, err, "standard output of the worker")
	assert.NoError(s, cmd.Start(), "start of the worker")
	w := &process{cmd: cmd, out: gob.NewEncoder(in), in: gob.NewDecoder(out)}
	s.Cleanup(func() { w.kill(s.T) })
	s.workers = append(s.workers, w)
	w.advance(s, s.advanced)
	return w
}

func (s *subject) startAll() []*process {
	s.Helper()
	for range processes {
		s.start()
	}
	return s.workers
}

// kill ends the worker at once, SIGKILL on Unix, and waits for its end.
func (w *process) kill(t *testing.T) {
	t.Helper()
	if w.cmd.ProcessState != nil {
		return
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Errorf("worker %d cannot be killed: %v", w.cmd.Process.Pid, err)
	}
	_ = w.cmd.Wait() // it reports the signal
}

func (w *process) advance(s *subject, d time.Duration) {
	s.Helper()
	if d > 0 && w.cmd.ProcessState == nil {
		w.ask(s, request{Op: opAdvance, Advance: d})
	}
}

// ask sends one request and waits for its answer.
func (w *process) ask(s *subject, req request) response {
	s.Helper()
	w.send(s, req)
	return w.receive(s)
}

func (w *process) send(s *subject, req request) {
	s.Helper()
	assert.NoError(s, w.out.Encode(req), "request to a worker")
}

func (w *process) receive(s *subject) response {
	s.Helper()
	res, err := w.read()
	assert.NoError(s, err, "answer of a worker")
	if res.Fault != "" {
		s.Fatalf("got the fault %q from a worker, want none", res.Fault)
	}
	return res
}

func (w *process) read() (response, error) {
	giveUp := time.AfterFunc(answerWithin, func() { _ = w.cmd.Process.Kill() })
	defer giveUp.Stop()
	var res response
	err := w.in.Decode(&res)
	if err == io.EOF { //nolint:errorlint // gob returns it bare.
		err = fmt.Errorf("the worker has ended, or gave no answer within %v", answerWithin)
	}
	return res, err
}

func (w *process) claim(s *subject, p semel.BeginParams) semel.Record {
	s.Helper()
	begun := w.ask(s, request{Op: opBegin, Begin: []semel.BeginParams{p}}).Begun
	if len(begun) != 1 || begun[0].Outcome != semel.BeginClaimed {
		s.Fatalf("got %v from a worker, want one claim", begun)
	}
	return begun[0].Record
}

// raceOfProcesses sends racers Begins of key, as many by each worker.
func (s *subject) raceOfProcesses(key string) []semel.BeginResult {
	s.Helper()
	batches := make([]request, len(s.workers))
	for i := range batches {
		batches[i].Op = opBegin
		for range racers / processes {
			batches[i].Begin = append(batches[i].Begin, resuming(key))
		}
	}
	for i, w := range s.workers {
		w.send(s, batches[i])
	}
	var all []semel.BeginResult
	for _, w := range s.workers {
		all = append(all, w.receive(s).Begun...)
	}
	return all
}

func firstBeginsOfProcesses(s *subject) {
	s.startAll()
	for round := range rounds {
		won := oneClaimed(s, s.raceOfProcesses(fmt.Sprint("round ", round)), 1, semel.BeginBusy)
		s.end(won, toDone)
	}
}

func takeoversOfProcesses(s *subject) {
	s.startAll()
	inRounds(s, lapsed, func(key string, first semel.Record) {
		won := oneClaimed(s, s.raceOfProcesses(key), 2, semel.BeginBusy)
		assert.Equal(s, won.OperationID, first.OperationID, "operation id")
	})
}

func sweepersOfProcesses(s *subject) {
	const records = 40
	for i := range records {
		s.end(s.claim(params(fmt.Sprint(i))), toDone)
	}
	workers := s.startAll()
	s.advance(retention + slack)
	total := 0
	for _, w := range workers {
		w.send(s, request{Op: opSweep, Limit: records})
	}
	for _, w := range workers {
		total += w.receive(s).Swept
	}
	assert.Equal(s, total, records, "swept by all")
}

func ownerKilled(s *subject) {
	w := s.start()
	hold, resume := w.claim(s, params("hold")), w.claim(s, resuming("resume"))
	w.kill(s.T)
	s.want(params("hold"), semel.BeginBusy)
	s.want(resuming("resume"), semel.BeginBusy)
	s.lapse()
	s.want(params("hold"), semel.BeginUnknown)
	second := s.claim(resuming("resume"))
	assert.Equal(s, second.Attempt, 2, "attempt")
	assert.Equal(s, second.OperationID, resume.OperationID, "operation id")
	assert.Equal(s, s.get("hold").OperationID, hold.OperationID, "operation id of the held one")
	s.end(second, toDone)
}

// churnKilled kills workers while they write as fast as they can.
func churnKilled(s *subject) {
	next := 0
	for round := range rounds {
		w := s.start()
		w.send(s, request{Op: opChurn})
		finished := 0
		for range 5 + 3*round {
			wantHeld(s, w.receive(s).Held, semel.HeldYes, semel.StateDone)
			finished++
		}
		w.kill(s.T)
		for ; next < finished; next++ {
			assert.Equal(s, s.get(churnKey(next)).State, semel.StateDone, "state of what the worker had finished")
		}
		next = s.resumeChurn(next)
		assert.Equal(s, s.get(churnKey(next+1)).State, semel.StateAbsent, "state of what the worker had not begun")
	}
}

// resumeChurn ends what a killed worker has left, which is the first key that is
// not done, and returns its number. A server may still be at the last statement
// that the worker had sent: then a Begin finds what that did, and it is the last.
func (s *subject) resumeChurn(next int) int {
	s.Helper()
	for tries := 1; ; tries++ {
		for s.get(churnKey(next)).State == semel.StateDone {
			next++
		}
		s.lapse()
		res, err := s.store.Begin(s.Context(), resuming(churnKey(next)))
		assert.NoError(s, err, "Begin")
		if res.Outcome == semel.BeginClaimed {
			s.end(res.Record, toDone)
			return next
		}
		if tries > 1 {
			s.Fatalf("got outcome %s of what a killed worker has left, want %s", res.Outcome, semel.BeginClaimed)
		}
	}
}

// whileFrozen stops the worker, sends it req, lets meanwhile pass, wakes it
// and returns its answer.
func (w *process) whileFrozen(s *subject, req request, meanwhile func()) response {
	s.Helper()
	assert.NoError(s, freeze(w.cmd.Process), "SIGSTOP")
	w.send(s, req)
	meanwhile()
	assert.NoError(s, thaw(w.cmd.Process), "SIGCONT")
	return w.receive(s)
}

func frozenSuperseded(s *subject) {
	w := s.start()
	first := w.claim(s, resuming("key"))
	var before semel.Record
	held := w.whileFrozen(s, request{Op: opFinish, Claim: first.Claim(), Finish: toReleased}, func() {
		s.advanceHere(lapse)
		s.end(s.claim(resuming("key")), toDone)
		before = s.get("key")
	}).Held
	wantHeld(s, held, semel.HeldSuperseded, semel.StateDone)
	held = w.ask(s, request{Op: opExtend, Claim: first.Claim(), Extend: renew}).Held
	wantHeld(s, held, semel.HeldSuperseded, semel.StateDone)
	s.unchanged(before)
}

func frozenHeld(s *subject) {
	w := s.start()
	first := w.claim(s, params("key"))
	held := w.whileFrozen(s, request{Op: opFinish, Claim: first.Claim(), Finish: toDone}, func() {
		s.advanceHere(lapse)
		s.want(params("key"), semel.BeginUnknown)
	}).Held
	wantHeld(s, held, semel.HeldYes, semel.StateDone)
	s.want(params("key"), semel.BeginReplay)
}

func finisherKilled(s *subject) {
	w := s.start()
	rec := w.claim(s, params("key"))
	w.ask(s, request{Op: opFinish, Claim: rec.Claim(), Finish: toDone})
	w.kill(s.T)
	before := s.get("key")
	s.end(rec, toDone)
	s.unchanged(before)
	res := s.want(params("key"), semel.BeginReplay)
	assert.Equal(s, normal(res.Record.Reply), normal(toDone.Reply), "reply")
}

func joinedKilled(s *subject) {
	w := s.start()
	rec := w.claim(s, resuming("key"))
	w.ask(s, request{Op: opWrite, Claim: rec.Claim()})
	w.kill(s.T)
	s.wantRows(0)
	assert.Equal(s, s.get("key").State, semel.StateRunning, "state")
	s.lapse()
	second := s.claim(resuming("key"))
	wantHeld(s, s.commit(s.join(second), toDone), semel.HeldYes, semel.StateDone)
	s.wantRows(1)
}

func joinedFrozen(s *subject) {
	w := s.start()
	first := w.claim(s, resuming("key"))
	w.whileFrozen(s, request{Op: opWrite, Claim: first.Claim()}, func() {
		s.advanceHere(lapse)
		wantHeld(s, s.commit(s.join(s.claim(resuming("key"))), toDone), semel.HeldYes, semel.StateDone)
	})
	held := w.ask(s, request{Op: opCommit, Claim: first.Claim(), Finish: toDone}).Held
	wantHeld(s, held, semel.HeldSuperseded, semel.StateDone)
	s.wantRows(1)
}
