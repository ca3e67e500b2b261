package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// startWithin is how long the workers may take to be up.
	startWithin = time.Minute
	// endWithin is how long one may take to end.
	endWithin = time.Minute
)

// fleet is the workers of a run.
type fleet []*worker

// worker is one process that takes payments.
type worker struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer
	address string
}

// startFleet starts the workers and returns when all are up.
func startFleet(s *setting) (fleet, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var f fleet
	said := make(chan error, workers)
	for range workers {
		w, stdout, err := startWorker(string(text))
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f = append(f, w)
		go func() {
			line, err := bufio.NewReader(stdout).ReadString('\n')
			w.address = strings.TrimSpace(line)
			said <- err
		}()
	}
	late := time.NewTimer(startWithin)
	defer late.Stop()
	for range f {
		select {
		case err := <-said:
			if err != nil {
				return nil, errors.Join(fmt.Errorf("a worker did not say where it listens: %w", err), f.stop())
			}
		case <-late.C:
			return nil, errors.Join(fmt.Errorf("the workers are not up after %v", startWithin), f.stop())
		}
	}
	return f, nil
}

func startWorker(text string) (*worker, io.Reader, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+text)
	w := &worker{cmd: cmd}
	cmd.Stderr = &w.stderr
	var err error
	if w.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return w, stdout, cmd.Start()
}

// stop ends the workers, and says how if that was not in good order: one that
// had died would have been missed by its clients, and one may be stuck.
func (f fleet) stop() error {
	var wrong []error
	for _, w := range f {
		w.stdin.Close()
	}
	for i, w := range f {
		late := time.AfterFunc(endWithin, func() { w.cmd.Process.Kill() })
		if err := w.cmd.Wait(); err != nil {
			wrong = append(wrong, fmt.Errorf("worker %d did not end in good order: %w: %s", i, err, &w.stderr))
		}
		late.Stop()
	}
	return errors.Join(wrong...)
}

// freezeScript stops a process and lets it go on, also when whoever asked for
// it is gone by then.
const freezeScript = `kill -s STOP "$1" && sleep "$2"; kill -s CONT "$1"`

// freeze stops the worker for so long.
func (w *worker) freeze(ctx context.Context, d time.Duration) error {
	out, err := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", freezeScript, "sh",
		fmt.Sprint(w.cmd.Process.Pid), fmt.Sprint(d.Seconds())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("freeze a worker: %w: %s", err, out)
	}
	return nil
}

// readJournal reads what the workers have noted outside the store.
func readJournal(path string) ([]effect, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []effect
	for line := range bytes.Lines(text) {
		var e effect
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		all = append(all, e)
	}
	return all, nil
}
