package storm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTries is how many starts in a row may fail. Some do: a process is
	// killed before it is up, or its old address is somebody's for a moment.
	startTries = 40
	// startAgain is waited after a start that failed.
	startAgain = 50 * time.Millisecond
	// endWithin is how long a process may take to end when it is told to.
	endWithin = time.Minute
)

// kept is a process that is started again, at its old address, whenever it
// dies.
type kept struct {
	name    string
	program string
	args    func(listen string) []string
	address func(line string) (string, error) // from the first line it prints
	end     func(l *life) error               // tells it to end
	log     *journal

	up    chan struct{} // closed when it is up for the first time
	ended chan struct{} // closed when it will not be started again

	mu      sync.Mutex
	at      string // its address
	latest  *life
	stopped bool
	fault   error // why it was given up
}

// life is one process.
type life struct {
	cmd   *exec.Cmd
	stdin io.Closer
	over  chan struct{} // closed when it is gone, ended being set
	ended time.Time
}

func (l *life) gone() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// listening reads what a service or a bank says when it is up.
func listening(line string) (string, error) {
	address, ok := strings.CutPrefix(line, "listening on ")
	if !ok {
		return "", fmt.Errorf("it said %q", line)
	}
	return address, nil
}

// announced reads what "semel demo --json" says when it is up.
func announced(line string) (string, error) {
	var said struct {
		URL string `json:"url"`
	}
	err := json.Unmarshal([]byte(line), &said)
	return strings.TrimPrefix(said.URL, "http://"), err
}

func closeInput(l *life) error { return l.stdin.Close() }

func terminate(l *life) error { return l.cmd.Process.Signal(syscall.SIGTERM) }

// run keeps the process up until stop.
func (k *kept) run() {
	defer close(k.ended)
	for failed := 0; ; {
		err := k.live()
		k.mu.Lock()
		failed++
		if err == nil {
			failed = 0
		}
		if failed == startTries {
			k.fault = fmt.Errorf("the %s could not be started in %d tries: %w", k.name, startTries, err)
		}
		enough := k.stopped || k.fault != nil
		k.mu.Unlock()
		if enough {
			return
		}
		if err != nil {
			<-time.After(startAgain)
		}
	}
}

// live is one process from start to end. The error says why it never came up.
func (k *kept) live() error {
	l, stdout, err := k.begin()
	if l == nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var address string
	if err == nil {
		address, err = k.address(strings.TrimSpace(line))
	}
	if err == nil {
		k.mu.Lock()
		if k.at == "" {
			k.at = address
			close(k.up)
		}
		k.mu.Unlock()
	} else {
		l.cmd.Process.Kill()
	}
	io.Copy(io.Discard, stdout) // to its end, which is the process's
	l.ended = time.Now()
	l.cmd.Wait()
	close(l.over)
	return err
}

// begin starts the process, or returns no life once there is to be none.
func (k *kept) begin() (*life, io.Reader, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return nil, nil, nil
	}
	listen := k.at
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	cmd := exec.Command(k.program, k.args(listen)...)
	cmd.Stderr = k.log.of(k.name)
	cmd.WaitDelay = endWithin
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	k.latest = &life{cmd: cmd, stdin: stdin, over: make(chan struct{})}
	return k.latest, stdout, nil
}

// current returns the process that is up, or the last one that was.
func (k *kept) current() *life {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest
}

// where returns its address.
func (k *kept) where() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at
}

// signal sends sig to the process that is up, and reports whether one was.
func (k *kept) signal(sig os.Signal) bool {
	l := k.current()
	return l != nil && !l.gone() && l.cmd.Process.Signal(sig) == nil
}

// await waits until the process is up for the first time.
func (k *kept) await(ctx context.Context) error {
	select {
	case <-k.up:
		return nil
	case <-k.ended:
		return k.fault
	case <-ctx.Done():
		return fmt.Errorf("the %s is not up: %w", k.name, context.Cause(ctx))
	}
}

// stop ends the process for good, as its supervisor would, and says what was
// wrong with that, or with its starts before.
func (k *kept) stop() error {
	k.mu.Lock()
	k.stopped = true
	l := k.latest
	k.mu.Unlock()
	var wrong error
	if l != nil && !l.gone() {
		late := time.AfterFunc(endWithin, func() { l.cmd.Process.Kill() })
		k.end(l)
		<-l.over
		late.Stop()
		if state := l.cmd.ProcessState; !state.Success() {
			wrong = fmt.Errorf("the %s was told to end and did not in good order: %v", k.name, state)
		}
	}
	<-k.ended
	if k.fault != nil {
		return k.fault
	}
	return wrong
}

// osProcess is a process as the operating system lists it.
type osProcess struct {
	pid, parent int
	args        []string
}

// processesOf lists the processes that were started for dir: their command
// line names it.
func processesOf(dir string) []osProcess {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var found []osProcess
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(line, []byte(dir)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			found = append(found, osProcess{pid: pid, parent: parentOf(pid), args: strings.Split(string(line), "\x00")})
		}
	}
	return found
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// kill kills p, unless its number is another process's by now.
func (p osProcess) kill(dir string) bool {
	process, err := os.FindProcess(p.pid)
	if err != nil {
		return false
	}
	defer process.Release()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if err != nil || !bytes.Contains(line, []byte(dir)) {
		return false
	}
	return process.Kill() == nil
}

// journal is what the processes of a run have logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// of returns where the process of that name logs to.
func (j *journal) of(name string) io.Writer { return &page{j, name} }

type page struct {
	journal *journal
	name    string
}

// Write notes text, which is one or more whole lines, as slog writes them.
func (p *page) Write(text []byte) (int, error) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&p.journal.text, "%s: %s\n", p.name, bytes.TrimSpace(line))
	}
	return len(text), nil
}

// about returns the lines that contain word.
func (j *journal) about(word string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, word) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
