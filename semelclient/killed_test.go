//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package semelclient_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
)

// roleVariable makes this program play a process at the folder that
// folderVariable names.
const (
	roleVariable   = "SEMELCLIENT_TEST_ROLE"
	folderVariable = "SEMELCLIENT_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	roles := map[string]func(*semelclient.FileStore) error{"busy": keepBusy, "full": onFullDisk}
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	store, err := semelclient.OpenFileStore(os.Getenv(folderVariable))
	if err == nil {
		err = role(store)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// playing a role, in a shell that has run a command before.
func process(t *testing.T, before, role, folder string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	assert.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", before+`exec "$0"`, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, folderVariable+"="+folder)
	return cmd
}

func made(key string) semelclient.Intent {
	return semelclient.Intent{Key: key, Method: http.MethodPost, URL: target, Body: []byte(payment), Created: time.Now()}
}

// keepBusy adds, settles, lets go and forgets until it is killed, and says what it
// has done, and what it is about to forget.
func keepBusy(s *semelclient.FileStore) error {
	failed := make(chan error)
	for worker := range 3 {
		go func() {
			for n := 0; ; n++ {
				if err := busyWith(s, fmt.Sprintf("%d-%d", worker, n)); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

func busyWith(s *semelclient.FileStore, key string) error {
	ctx := context.Background()
	h, err := s.Add(ctx, made(key), time.Hour)
	if err != nil {
		return err
	}
	fmt.Println("added", key)
	switch rand.IntN(3) {
	case 0:
		if err = s.Settle(ctx, h, semelclient.Settlement{Outcome: semelclient.Applied}); err == nil {
			fmt.Println("settled", key)
		}
	case 1:
		if err = s.Release(ctx, h); err == nil {
			_, err = s.Hold(ctx, key, time.Hour)
		}
	default:
		fmt.Println("forgets", key)
		err = s.Forget(ctx, key)
	}
	return err
}

func TestAKilledProcessLeavesWhatItSaidAndNothingInTheWay(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("SEMEL_LONG") != "" {
		rounds = 200
	}
	folder := t.TempDir()
	living := openFiles(t, folder)
	_, err := living.Add(t.Context(), made("living"), time.Hour)
	assert.NoError(t, err)
	for range rounds {
		said := killed(t, folder, 1+rand.IntN(40))
		s := openFiles(t, folder)
		left := make(map[string]bool)
		for key, err := range s.Keys(t.Context()) {
			assert.NoError(t, err, "nothing is torn")
			left[key] = true
		}
		for key, last := range said {
			assert.True(t, left[key] || last == "forgets", "%s is gone after it was %s", key, last)
		}
		for key := range left {
			entry, err := s.Hold(t.Context(), key, time.Hour)
			if key == "living" {
				assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
				continue
			}
			assert.NoError(t, err, "nobody holds it any more")
			assert.True(t, said[key] != "settled" || entry.Settlement != nil, "%s is settled", key)
			assert.NoError(t, s.Forget(t.Context(), key))
		}
		assert.Equal(t, stored(t, s), 1, "intents")
		assert.NoError(t, s.Close())
		files, err := os.ReadDir(folder)
		assert.NoError(t, err)
		assert.Equal(t, len(files), 4, "the gate, and the intent, hold and owner of the living: %v", files)
	}
}

// killed kills a busy process once it has said so many lines, and returns the last
// that it said of each key.
func killed(t *testing.T, folder string, lines int) map[string]string {
	t.Helper()
	cmd := process(t, "", "busy", folder)
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	said := make(map[string]string)
	scanner := bufio.NewScanner(out)
	for n := 1; scanner.Scan(); n++ {
		if what, key, ok := strings.Cut(scanner.Text(), " "); ok {
			said[key] = what
		}
		if n == lines {
			assert.NoError(t, cmd.Process.Kill())
		}
	}
	err = cmd.Wait()
	assert.True(t, err != nil && !cmd.ProcessState.Exited(), "it was killed: %v\n%s", err, &faults)
	return said
}

// onFullDisk tries to add what is there already and what is not, where no file can
// have a byte.
func onFullDisk(s *semelclient.FileStore) error {
	signal.Ignore(syscall.SIGXFSZ)
	for _, key := range []string{"there", "new"} {
		if _, err := s.Add(context.Background(), made(key), time.Hour); err == nil || errors.Is(err, semelclient.ErrIntentKnown) {
			return fmt.Errorf("the disk is not full: %w", err)
		}
	}
	return nil
}

func TestAnAddOnAFullDiskLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := openFiles(t, folder)
	h, err := s.Add(t.Context(), made("there"), time.Hour)
	assert.NoError(t, err)
	out, err := process(t, "ulimit -f 0; ", "full", folder).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.Equal(t, stored(t, s), 1, "intents")
	files, err := filepath.Glob(filepath.Join(folder, "*.new"))
	assert.NoError(t, err)
	assert.Equal(t, len(files), 0, "files that are half written")
	assert.NoError(t, s.Settle(t.Context(), h, semelclient.Settlement{}))
}
