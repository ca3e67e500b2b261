//go:build unix

package services

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// releaseScript makes a process wait until it is watched before it becomes the
// program that it is for.
const releaseScript = `read -r _ && exec "$@" </dev/null`

// process is one running program, the leader of a process group.
type process struct {
	pid   int
	ended chan struct{} // closed when it has ended, after err was set
	err   error
}

// begin starts a program in a folder, with its output going to log. The signal
// is the one that ends it if this process dies.
func begin(folder, signal string, log *os.File, argv ...string) (*process, error) {
	w, err := watched()
	if err != nil {
		return nil, err
	}
	user, err := serverUser()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", releaseScript, "sh"}, argv...)...)
	cmd.Dir = folder
	// Nothing of PGDATA, MYSQL_HOME and their like.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + folder, "TMPDIR=" + folder}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: user}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, ended: make(chan struct{})}
	forget, noted := w.note(p.pid, signal)
	if noted == nil {
		fmt.Fprintln(stdin)
	}
	stdin.Close()
	go func() {
		p.err = cmd.Wait()
		forget()
		close(p.ended)
	}()
	return p, noted
}

// signal sends a signal to the process and its group, if it runs.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		syscall.Kill(-p.pid, s) //nolint:errcheck // it has ended by itself, then
	}
}

// endsWithin waits for the end of the process, and says whether it came.
func (p *process) endsWithin(limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.ended:
		return true
	case <-late.C:
		return false
	}
}

// runWithin is how long a program that ends by itself may take.
const runWithin = 2 * time.Minute

// run runs a program to its end and returns what it said.
func run(folder string, argv ...string) (string, error) {
	log, err := os.CreateTemp(folder, "said-")
	if err != nil {
		return "", err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	p, err := begin(folder, "KILL", log, argv...)
	if err != nil {
		return "", err
	}
	if !p.endsWithin(runWithin) {
		p.signal(syscall.SIGKILL)
		return "", fmt.Errorf("%s did not end within %v", argv[0], runWithin)
	}
	said, err := os.ReadFile(log.Name())
	if err != nil {
		return "", err
	}
	if p.err != nil {
		return "", fmt.Errorf("%s: %w: %s", argv[0], p.err, said)
	}
	return string(said), nil
}

// serverUser returns the user that servers run as: the one who started the
// tests, or nobody in place of root, as whom PostgreSQL and PgBouncer refuse to
// run.
func serverUser() (*syscall.Credential, error) {
	if uid := os.Geteuid(); uid != 0 {
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getegid()), NoSetGroups: true}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// passable makes a new folder passable for the servers' user, and says which
// of those above it is not.
func passable(folder string) error {
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // they pass through, and see nothing
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for up := filepath.Dir(folder); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 {
			return fmt.Errorf("the servers run as nobody, who cannot pass through %s: set TMPDIR to a folder that all can", up)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}
