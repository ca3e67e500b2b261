//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package semelclient_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// closeGate locks the gate of a folder as a process does that got no further.
func closeGate(t *testing.T, folder string) (open func()) {
	t.Helper()
	gate, err := os.OpenFile(filepath.Join(folder, "gate"), os.O_RDWR, 0)
	assert.NoError(t, err)
	assert.NoError(t, syscall.Flock(int(gate.Fd()), syscall.LOCK_EX))
	return func() { assert.NoError(t, gate.Close()) }
}

func TestWhoWaitsForTheFolderWaitsAsLongAsToldAndNoLonger(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, other := openFiles(t, folder), openFiles(t, folder)
	client := clientOn(t, s, playing(status(201)))
	known := intend(t, client)
	fresh, err := clientOn(t, new(semelclient.MemoryStore), playing(status(201))).Intend(t.Context(), "POST", target, nil, nil)
	assert.NoError(t, err)
	second := intend(t, client)
	assert.NoError(t, s.Forget(t.Context(), second.Key))
	hold, err := s.Add(t.Context(), second, time.Hour)
	assert.NoError(t, err)

	open := closeGate(t, folder)
	for name, call := range map[string]func(ctx context.Context) error{
		"Add": func(ctx context.Context) error {
			_, err := s.Add(ctx, fresh, time.Hour)
			return err
		},
		"Hold": func(ctx context.Context) error {
			_, err := s.Hold(ctx, known.Key, time.Hour)
			return err
		},
		"Settle":  func(ctx context.Context) error { return s.Settle(ctx, hold, semelclient.Settlement{}) },
		"Forget":  func(ctx context.Context) error { return s.Forget(ctx, known.Key) },
		"Release": func(ctx context.Context) error { return s.Release(ctx, hold) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		assert.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
		cancel()
	}
	open()

	_, err = other.Add(t.Context(), fresh, time.Hour)
	assert.NoError(t, err, "what did not get in has changed nothing")
	_, err = other.Hold(t.Context(), known.Key, time.Hour)
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
	entry, err := s.Hold(t.Context(), second.Key, time.Hour)
	assert.NoError(t, err, "what was to be let go is")
	assert.NoError(t, s.Release(t.Context(), entry.Hold))
	_, err = other.Hold(t.Context(), second.Key, time.Hour)
	assert.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "*.new"))
	assert.NoError(t, err)
	assert.Equal(t, len(files), 0, "nothing half-done is left")
}

func TestAReleaseThatDidNotGetInIsSeenByOthersLater(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, other := openFiles(t, folder), openFiles(t, folder)
	in := intend(t, clientOn(t, s, playing(status(201))))
	assert.NoError(t, s.Forget(t.Context(), in.Key))
	hold, err := s.Add(t.Context(), in, time.Hour)
	assert.NoError(t, err)
	open := closeGate(t, folder)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.Release(ctx, hold), context.DeadlineExceeded)
	open()
	assert.ErrorIs(t, s.Settle(t.Context(), hold, semelclient.Settlement{}), semelclient.ErrIntentHeld)
	_, err = other.Hold(t.Context(), in.Key, time.Hour)
	assert.NoError(t, err)
}

func TestDoDoesNotOutliveItsContextInTheStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := playing(status(201))
	client := clientOn(t, openFiles(t, folder), s)
	in := intend(t, client)
	in = semelclient.Intent{Key: in.Key} // as Recover has it: the hold has to be had first
	open := closeGate(t, folder)
	defer open()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := client.Do(ctx, in)
	assert.Equal(t, r.Outcome, semelclient.Unknown)
	assert.Equal(t, r.Reason, semelclient.ReasonStore)
	assert.ErrorIs(t, r.Err, context.DeadlineExceeded)
	assert.Equal(t, len(s.requests()), 0)
}
