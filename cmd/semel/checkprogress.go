package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel/check"
)

// Progress is shown at these intervals: on a terminal in one line that is
// rewritten, elsewhere in a line each.
const (
	terminalInterval = time.Second
	lineInterval     = 10 * time.Second
)

// checkProgress says on standard error how far a check has come.
type checkProgress struct {
	w        io.Writer
	terminal bool
	began    time.Time
	done     chan struct{}
	shown    sync.WaitGroup

	mu    sync.Mutex
	n, of int
	id    string
}

// newCheckProgress begins to show progress until end is called.
func newCheckProgress(w io.Writer) *checkProgress {
	p := &checkProgress{w: w, terminal: isTerminal(w), began: time.Now(), done: make(chan struct{})}
	p.shown.Go(p.show)
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// next notes which case begins.
func (p *checkProgress) next(n, of int, c check.Case) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n, p.of, p.id = n, of, c.ID
}

func (p *checkProgress) show() {
	interval := lineInterval
	if p.terminal {
		interval = terminalInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.print()
		case <-p.done:
			return
		}
	}
}

func (p *checkProgress) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := "trying whether the API works at all"
	if p.n > 0 {
		at = fmt.Sprintf("case %d of %d, %s", p.n, p.of, p.id)
	}
	line := fmt.Sprintf("semel check: %s, after %s", at, time.Since(p.began).Round(time.Second))
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// end stops it, and leaves an empty line on a terminal.
func (p *checkProgress) end() {
	close(p.done)
	p.shown.Wait()
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
