//go:build unix

package storetest_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/storetest"
)

// workerVariable makes a process of this test a worker on the file it names.
const workerVariable = "SEMEL_STORETEST_WORKER"

func TestMain(m *testing.M) {
	path := os.Getenv(workerVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	store := newShared(path)
	worker := storetest.Worker{Store: store, Advance: store.advance, Write: writeRow}
	if err := worker.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// shared is a reference on a file, which processes share, with a clock that
// can be moved.
type shared struct {
	*reference

	file   *file
	offset atomic.Int64 // nanoseconds
}

func newShared(path string) *shared {
	s := &shared{file: &file{path: path, unlocked: os.Getenv(brokenVariable) == unlockedFile}}
	s.reference = &reference{
		medium: s.file,
		now:    func() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) },
	}
	if os.Getenv(brokenVariable) == ownCopy {
		s.medium = newReference().medium
	}
	return s
}

func (s *shared) Unwrap() semel.Store { return s.reference }

func (s *shared) advance(d time.Duration) error {
	s.offset.Add(int64(d))
	return nil
}

// file is a medium for several processes: a lock file, and the tables in
// another one that is replaced as a whole, so that a killed process leaves the
// old tables or the new.
type file struct {
	path     string
	unlocked bool // the fault
}

func (m *file) borrow(f func(*tables) bool) error {
	lock, err := os.OpenFile(m.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	if !m.unlocked {
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			return err
		}
	}
	t, err := m.read()
	if err != nil || !f(&t) {
		return err
	}
	t.Writes++
	return m.write(&t)
}

func (m *file) read() (tables, error) {
	t := tables{Records: map[at]semel.Record{}}
	in, err := os.Open(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer in.Close()
	return t, gob.NewDecoder(in).Decode(&t)
}

func (m *file) write(t *tables) error {
	out, err := os.CreateTemp(filepath.Dir(m.path), "new")
	if err != nil {
		return err
	}
	if err := errors.Join(gob.NewEncoder(out).Encode(t), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), m.path)
}

// The faults of a store that several processes share.
const (
	unlockedFile = "a file without a lock"
	ownCopy      = "a copy in each process"
)

// TestProcesses runs the suite with worker processes, on a file.
func TestProcesses(t *testing.T) {
	t.Parallel()
	h := harness(nil)
	h.New = func(t *testing.T) semel.Store { return newShared(filepath.Join(t.TempDir(), "tables")) }
	h.Advance = func(t *testing.T, s semel.Store, d time.Duration) {
		moved, _ := semel.As[*shared](s)
		assert.NoError(t, moved.advance(d))
	}
	h.Around = nil
	h.Process = func(t *testing.T, s semel.Store) *exec.Cmd {
		on, _ := semel.As[*shared](s)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), workerVariable+"="+on.file.path)
		return cmd
	}
	h.Stall = nil
	h.Lacks = storetest.Stalling
	storetest.Run(t, h)
}

func TestBrokenProcesses(t *testing.T) {
	t.Parallel()
	t.Run(unlockedFile+" is caught", func(t *testing.T) {
		t.Parallel()
		run := runSuite(t, "TestProcesses/several_processes/crash_point_3", unlockedFile)
		assert.Equal(t, len(run.failed), 1, "rules that fail:\n%s", run.output)
	})
	t.Run(ownCopy+" is caught by every rule on several processes", func(t *testing.T) {
		t.Parallel()
		run := runSuite(t, "TestProcesses/several_processes", ownCopy)
		assert.Equal(t, len(run.passed), 0, "rules that pass")
		assert.Equal(t, len(run.failed), 10, "rules that fail:\n%s", run.output)
	})
}
