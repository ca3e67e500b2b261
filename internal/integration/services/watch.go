//go:build unix

package services

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// watchScript is the shell that outlives this process. Its input ends when the
// process does, be it by SIGKILL. In the folder, pids/N holds the name of the
// signal that ends the process group N. A PostgreSQL that was killed leaves a
// little shared memory, whose number is in its postmaster.pid.
const watchScript = `
while read -r _; do :; done
cd "$1" || exit 1
for f in pids/*; do kill -s "$(cat "$f")" -- "-${f#pids/}"; done
tries=0
for f in pids/*; do
	while [ $tries -lt 200 ] && kill -s 0 -- "-${f#pids/}"; do
		tries=$((tries + 1))
		sleep 0.05
	done
	kill -s KILL -- "-${f#pids/}"
done
for f in */data/postmaster.pid; do ipcrm -m "$(awk 'NR == 7 { print $2 }' "$f")"; done
cd /
rm -rf "$1"
`

// watch is the folder of all servers of this process, and the shell that ends
// them.
type watch struct {
	folder string
	held   io.WriteCloser // the shell's input: nothing is ever written to it
	shell  *exec.Cmd

	mu   sync.Mutex
	made int // folders
}

// theWatch is that of this process, nil before its first server.
var theWatch struct {
	sync.Mutex
	*watch
}

// Main runs the tests of a program and ends the servers they started. It
// returns the exit code: func TestMain(m *testing.M) { os.Exit(services.Main(m)) }.
func Main(m *testing.M) int {
	defer End()
	return m.Run()
}

// End ends all servers of this process, removes their folders and returns when
// that is done.
func End() {
	theWatch.Lock()
	defer theWatch.Unlock()
	if theWatch.watch == nil {
		return
	}
	theWatch.held.Close()
	theWatch.shell.Wait() //nolint:errcheck // its exit code is that of rm
	theWatch.watch = nil
}

// watched returns the watch of this process, and starts it if there is none.
func watched() (*watch, error) {
	theWatch.Lock()
	defer theWatch.Unlock()
	if theWatch.watch != nil {
		return theWatch.watch, nil
	}
	folder, err := os.MkdirTemp("", "semel-services-")
	if err != nil {
		return nil, err
	}
	w := &watch{folder: folder}
	if err := w.start(); err != nil {
		os.RemoveAll(folder)
		return nil, fmt.Errorf("watch over the servers: %w", err)
	}
	theWatch.watch = w
	return w, nil
}

func (w *watch) start() error {
	if err := passable(w.folder); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(w.folder, "pids"), 0o700); err != nil {
		return err
	}
	w.shell = exec.CommandContext(context.Background(), "/bin/sh", "-c", watchScript, "sh", w.folder)
	w.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if w.held, err = w.shell.StdinPipe(); err != nil {
		return err
	}
	return w.shell.Start()
}

// newFolder makes a folder that belongs to the user the servers run as.
func (w *watch) newFolder(name string) (string, error) {
	w.mu.Lock()
	w.made++
	folder := filepath.Join(w.folder, fmt.Sprintf("%s-%d", name, w.made))
	w.mu.Unlock()
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	user, err := serverUser()
	if err != nil {
		return folder, err
	}
	return folder, os.Chown(folder, int(user.Uid), int(user.Gid))
}

// note says that the process group pid is to be ended with the signal; the
// function it returns takes that back.
func (w *watch) note(pid int, signal string) (func(), error) {
	path := filepath.Join(w.folder, "pids", strconv.Itoa(pid))
	return func() { os.Remove(path) }, os.WriteFile(path, []byte(signal), 0o600)
}
