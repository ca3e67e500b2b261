package semelclient_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/intenttest"
	"github.com/semel-dev/semel/semelclient"
)

func openFiles(t *testing.T, folder string) *semelclient.FileStore {
	t.Helper()
	s, err := semelclient.OpenFileStore(folder)
	assert.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStoresKeepTheContract(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := new(semelclient.MemoryStore)
		intenttest.Run(t, func(*testing.T) semelclient.IntentStore { return store })
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "intents")
		intenttest.Run(t, func(t *testing.T) semelclient.IntentStore { return openFiles(t, folder) })
	})
}

func TestAHoldEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	dead, alive := openFiles(t, folder), openFiles(t, folder)
	client := clientOn(t, dead, playing(status(201)))
	in := intend(t, client)
	_, err := alive.Hold(t.Context(), in.Key, time.Hour)
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
	assert.NoError(t, dead.Close()) // its locks go, as when a process ends
	entry, err := alive.Hold(t.Context(), in.Key, time.Hour)
	assert.NoError(t, err)
	assert.Equal(t, string(entry.Intent.Body), payment)
}

func TestATornFileIsFoundAndNeverSent(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(text []byte) []byte{
		func(text []byte) []byte { return text[:len(text)-1] },
		func(text []byte) []byte { return text[:20] },
		func([]byte) []byte { return nil },
		func(text []byte) []byte { return []byte(strings.Replace(string(text), "bank.test", "evil.test", 1)) },
		func(text []byte) []byte { return make([]byte, len(text)) },
	} {
		for _, key := range []string{"", "order 17"} {
			folder := t.TempDir()
			s := playing(status(201))
			client := clientOn(t, openFiles(t, folder), s)
			header := http.Header{}
			if key != "" {
				header.Set("Idempotency-Key", `"`+key+`"`)
			}
			for range 2 {
				_, err := client.Intend(t.Context(), http.MethodPost, target, header, []byte(payment))
				if key == "" {
					assert.NoError(t, err)
				}
			}
			files, err := filepath.Glob(filepath.Join(folder, "*.intent"))
			assert.NoError(t, err)
			text, err := os.ReadFile(files[0])
			assert.NoError(t, err)
			assert.NoError(t, os.WriteFile(files[0], damage(text), 0o600))

			next := clientOn(t, reopened(t, folder), s)
			booked := 0
			err = next.Recover(t.Context(), func(semelclient.Result) error {
				booked++
				return nil
			})
			assert.ErrorIs(t, err, semelclient.ErrIntentDamaged)
			assert.Contains(t, err.Error(), filepath.Base(files[0]))
			assert.Equal(t, len(s.requests()), len(files)-1, "the others are finished")
			assert.Equal(t, booked, len(files)-1)
			_, err = os.Stat(files[0])
			assert.NoError(t, err, "it stays, for somebody to look at")
		}
	}
}

// reopened makes the folder look as after a crash of all its processes.
func reopened(t *testing.T, folder string) *semelclient.FileStore {
	t.Helper()
	owners, err := filepath.Glob(filepath.Join(folder, "*.owner"))
	assert.NoError(t, err)
	for _, owner := range owners {
		assert.NoError(t, os.Remove(owner))
	}
	return openFiles(t, folder)
}

func TestWhatDeadProcessesLeaveIsTidiedUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openFiles(t, folder)
	for _, name := range []string{"dead.owner", "dead.123.new"} {
		assert.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	alive := openFiles(t, folder)
	assert.Equal(t, stored(t, s), 0)
	files, err := os.ReadDir(folder)
	assert.NoError(t, err)
	assert.Equal(t, len(files), 3, "two owners that live, and the gate")
	in := intend(t, clientOn(t, alive, playing(status(201))))
	_, err = s.Hold(t.Context(), in.Key, time.Hour)
	assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
}

func TestRecoverFinishesWhatIsOpen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := playing(lost)
	crashed := clientOn(t, openFiles(t, folder), s, func(c *semelclient.Config) { c.Policy.MaxAttempts = 1 })
	sent := intend(t, crashed)
	crashed.Do(t.Context(), sent)
	never := intend(t, crashed)
	done := intend(t, crashed)
	s.answers = []answer{status(201, "X-Id", "done")}
	crashed.Do(t.Context(), done)

	s.answers = []answer{status(201, "Idempotent-Replayed", "true")}
	store := reopened(t, folder)
	got := make(map[string]semelclient.Result)
	errBook := errors.New("the ledger is closed")
	book := func(r semelclient.Result) error {
		got[r.Intent.Key] = r
		if r.Intent.Key == never.Key {
			return errBook
		}
		return nil
	}
	one := func(c *semelclient.Config) { c.Parallel = 1 }
	client := clientOn(t, store, s, one)
	err := client.Recover(t.Context(), book)
	assert.ErrorIs(t, err, errBook)
	assert.Equal(t, len(got), 3)
	for key, r := range got {
		assert.Equal(t, r.Outcome, semelclient.Applied, key)
	}
	assert.Equal(t, got[done.Key].Header.Get("X-Id"), "done", "one that was settled is told again")
	assert.Equal(t, got[done.Key].Attempts, 0)
	assert.Equal(t, got[sent.Key].Intent.Body, []byte(payment))
	assert.Equal(t, stored(t, store), 1, "what could not be booked stays")

	errBook = nil
	got = make(map[string]semelclient.Result)
	assert.NoError(t, client.Recover(t.Context(), func(r semelclient.Result) error {
		got[r.Intent.Key] = r
		return nil
	}))
	assert.Equal(t, len(got), 1)
	assert.Equal(t, got[never.Key].Attempts, 0, "and is told without being sent again")
	assert.Equal(t, stored(t, store), 0)
}

func TestAnAddThatFailsHalfWayLeavesNoIntent(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openFiles(t, folder)
	client := clientOn(t, s, playing(status(201)))
	in := intend(t, client)
	assert.NoError(t, s.Forget(t.Context(), in.Key))
	inTheWay := filepath.Join(folder, in.Key+".held")
	assert.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700)) // no hold can be written
	_, err := s.Add(t.Context(), in, time.Hour)
	assert.True(t, err != nil, "it cannot be held")
	assert.Equal(t, stored(t, s), 0, "intents")
	assert.NoError(t, os.RemoveAll(inTheWay))
	_, err = s.Add(t.Context(), in, time.Hour)
	assert.NoError(t, err)
}
