// Package supervise keeps the processes of the reference system alive, and
// lets none of them outlive their supervisor.
//
// A child says on its standard output where it listens, or until then what it
// waits for, writes its log to its standard error, and lives as long as its standard input is open: the
// operating system closes that when the supervisor ends, however it ends. See
// [Until] and [Serve] for the child's side.
//
// A child that dies is started again at once, at the address it had, so that
// nobody needs to be told.
package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// readyPrefix begins the line with which a child says where it listens.
	readyPrefix = "listening on "
	// waitsPrefix begins the lines with which it says, before that, what it
	// waits for.
	waitsPrefix = "waiting for "
	// readyWithin is how long a child may take to say either: longer than a
	// database server is waited for.
	readyWithin = 40 * time.Second
	// stopWithin is how long a child may take to end once it is told to.
	stopWithin = 3 * time.Second
	// restarts is how many starts in a row may fail before a process that was
	// up once is given up.
	restarts = 6
)

// Config says how a process is run. Name, Path and Args are required.
type Config struct {
	// Name of the process, for messages.
	Name string
	// Path of the program.
	Path string
	// Args returns the arguments for the next start, and may wait for what
	// they depend on. The address to listen on is added as the last one, as
	// "--listen=HOST:PORT".
	Args func(ctx context.Context) ([]string, error)
	// Env is added to this process's environment, each "NAME=VALUE". Other
	// users see a process's arguments, and not this.
	Env []string
	// Line gets each line of the process's log. Default: dropped.
	Line func(line string)
	// Event gets what happens to the process. Default: dropped.
	Event func(text string)
	// Died is called when a child that was up has ended without being told
	// to. Default: nothing is.
	Died func(pid int, how string)
}

// Process is one child and its successors.
type Process struct {
	cfg Config

	mu      sync.Mutex
	address string        // of the latest child; empty before the first
	pid     int           // zero while none is up
	up      chan struct{} // closed while one is up
}

// New returns a process. It starts nothing: see Run.
func New(cfg Config) (*Process, error) {
	switch {
	case cfg.Name == "":
		return nil, errors.New("supervise: Config.Name is required: what the process is called in messages")
	case cfg.Path == "":
		return nil, fmt.Errorf("supervise: Config.Path of the %s is required: the program to run", cfg.Name)
	case cfg.Args == nil:
		return nil, fmt.Errorf("supervise: Config.Args of the %s is required: it returns the arguments of each start", cfg.Name)
	}
	if cfg.Line == nil {
		cfg.Line = func(string) {}
	}
	if cfg.Event == nil {
		cfg.Event = func(string) {}
	}
	if cfg.Died == nil {
		cfg.Died = func(int, string) {}
	}
	return &Process{cfg: cfg, up: make(chan struct{})}, nil
}

// Wait waits until a child is up and returns its address.
func (p *Process) Wait(ctx context.Context) (string, error) {
	for {
		p.mu.Lock()
		up, address, pid := p.up, p.address, p.pid
		p.mu.Unlock()
		if pid != 0 {
			return address, nil
		}
		select {
		case <-up:
		case <-ctx.Done():
			return "", fmt.Errorf("the %s is not up: %w", p.cfg.Name, context.Cause(ctx))
		}
	}
}

// redialEvery is waited between two tries to reach a child that is being
// started.
const redialEvery = 10 * time.Millisecond

// Dial connects to the child that is up, or to the next one. It tries again
// until ctx ends: nothing has been sent on a connection that was not made.
func (p *Process) Dial(ctx context.Context) (net.Conn, error) {
	for {
		address, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(redialEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("the %s cannot be reached: %w", p.cfg.Name, err)
		}
	}
}

// Run starts a child, and another one whenever it dies, until ctx ends. It
// returns nil then, and an error if the first child does not come up, or a
// later one does not in several tries.
func (p *Process) Run(ctx context.Context) error {
	failed := 0
	for {
		err := p.runOnce(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the child was ended, which is no fault.
		}
		if err == nil {
			failed = 0
			continue
		}
		failed++
		if !p.wasUp() || failed == restarts {
			return fmt.Errorf("the %s could not be started: %w", p.cfg.Name, err)
		}
		select {
		case <-time.After(25 * time.Millisecond << failed):
		case <-ctx.Done():
		}
	}
}

func (p *Process) wasUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address != ""
}

// runOnce runs one child to its end. It returns an error if the child never
// came up.
func (p *Process) runOnce(ctx context.Context) error {
	// On Linux a child is killed with the thread that started it: this one has
	// to stay until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child, err := p.start(ctx)
	if err != nil {
		return err
	}
	logged := make(chan string, 1)
	go func() { logged <- p.copyLog(child.stderr) }()
	address, err := child.address(func(what string) {
		p.cfg.Event(fmt.Sprintf("the %s (process %d) waits for %s", p.cfg.Name, child.cmd.Process.Pid, what))
	})
	if err == nil {
		p.cfg.Event(fmt.Sprintf("the %s (process %d) is up", p.cfg.Name, child.cmd.Process.Pid))
		p.set(address, child.cmd.Process.Pid)
	} else {
		child.cmd.Process.Kill()
	}
	last := <-logged // the log ends with the process
	waited := child.cmd.Wait()
	p.set("", 0)
	if err != nil {
		return fmt.Errorf("%w; its last words: %q", err, last)
	}
	if ctx.Err() == nil {
		p.cfg.Event(fmt.Sprintf("the %s (process %d) ended: %v", p.cfg.Name, child.cmd.Process.Pid, waited))
		p.cfg.Died(child.cmd.Process.Pid, fmt.Sprint(waited))
	}
	return nil
}

// child is one running program.
type child struct {
	cmd    *exec.Cmd
	stdout io.ReadCloser
	stderr io.ReadCloser
}

func (p *Process) start(ctx context.Context) (*child, error) {
	listen := "127.0.0.1:0"
	p.mu.Lock()
	if p.address != "" {
		listen = p.address
	}
	p.mu.Unlock()
	args, err := p.cfg.Args(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.cfg.Path, append(args, "--listen="+listen)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), p.cfg.Env...)
	cmd.SysProcAttr = attributes()
	cmd.Cancel = stdin.Close
	cmd.WaitDelay = stopWithin
	c := &child{cmd: cmd}
	if c.stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if c.stderr, err = cmd.StderrPipe(); err != nil {
		return nil, err
	}
	return c, cmd.Start()
}

// address reads where the child listens. While it waits for something, waits
// is called with each that is another one.
func (c *child) address(waits func(what string)) (string, error) {
	late := time.AfterFunc(readyWithin, func() { c.cmd.Process.Kill() })
	defer late.Stop()
	stdout := bufio.NewReader(c.stdout)
	for last := ""; ; {
		line, err := stdout.ReadString('\n')
		if err != nil {
			return "", errors.New("it ended before it was ready")
		}
		line = strings.TrimSuffix(line, "\n")
		if address, ok := strings.CutPrefix(line, readyPrefix); ok {
			return address, nil
		}
		what, ok := strings.CutPrefix(line, waitsPrefix)
		if !ok {
			return "", fmt.Errorf("it said %q instead of where it listens", line)
		}
		late.Reset(readyWithin)
		if what != last {
			waits(what)
			last = what
		}
	}
}

// copyLog passes the child's log on, line by line, and returns the last one.
func (p *Process) copyLog(r io.Reader) string {
	last := ""
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			last = line
			p.cfg.Line(line)
		}
		if err != nil {
			return last
		}
	}
}

// set notes that a child came up, or with pid zero that it ended. The address
// of an ended child stays for the next one.
func (p *Process) set(address string, pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.pid
	p.pid = pid
	switch {
	case pid != 0:
		p.address = address
		close(p.up)
	case was != 0:
		p.up = make(chan struct{})
	}
}
