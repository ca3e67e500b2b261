//go:build unix

package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	host = "127.0.0.1"
	// Ports are taken below those that the system gives to others (32768 and
	// up), so that nobody is given a server's port while it is down.
	firstPort, ports = 10_000, 12_000
	portTries        = 100
	// startTries is how often a new server is started where its port was taken
	// in between.
	startTries = 5
	// startWithin is how long a start may take: recovery of a database under
	// the race detector on a busy machine.
	startWithin = time.Minute
	pollEvery   = 3 * time.Millisecond
	// lastWords is how much of a log an error shows, in bytes.
	lastWords = 2_000
)

// Server is one running server. Its methods may be called from any goroutine.
type Server struct {
	name   string
	folder string
	port   int
	// beside is how much higher another port of the server is; zero: there is none.
	beside int
	// prepare fills a new folder. Default: nothing is to be done.
	prepare func() error
	// argv returns the program and its arguments, when the port is known.
	argv func() ([]string, error)
	// ready is what the program logs when it accepts connections.
	ready string
	// held is what it logs if its predecessor has not ended altogether.
	held string
	// end is the signal that ends it at once, and its name in a shell.
	end     syscall.Signal
	endName string

	mu      sync.Mutex
	running *process
}

// launch gives the server a folder and a port, and starts it.
func (s *Server) launch() error {
	w, err := watched()
	if err != nil {
		return err
	}
	if s.folder, err = w.newFolder(s.name); err != nil {
		return err
	}
	if s.prepare != nil {
		if err := s.prepare(); err != nil {
			return fmt.Errorf("prepare %s: %w", s.name, err)
		}
	}
	for range startTries {
		if s.port, err = freePort(s.beside); err != nil {
			return err
		}
		if err = s.Start(); !portTaken(err) {
			return err
		}
	}
	return err
}

// portTaken says whether a start failed because somebody else listens on the
// port. All the servers say it in these words.
func portTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "in use")
}

// Addr returns the host and port of the server; they stay the same.
func (s *Server) Addr() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// Start starts the server again, on its data and its port, and returns when it
// accepts connections. It does nothing if the server runs.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := time.Now().Add(startWithin)
	for {
		err := s.startOnce(late)
		if err == nil || s.held == "" || !strings.Contains(err.Error(), s.held) || time.Now().After(late) {
			return err
		}
		time.Sleep(pollEvery)
	}
}

func (s *Server) startOnce(late time.Time) error {
	if s.runs() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	argv, err := s.argv()
	if err != nil {
		return err
	}
	if s.running, err = begin(s.folder, s.endName, log, argv...); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	for {
		running := s.runs()
		said, err := io.ReadAll(io.NewSectionReader(log, before, 1<<30))
		switch {
		case err != nil:
			return err
		case !running:
			return fmt.Errorf("start %s: it ended: %w: %s", s.name, s.running.err, said[max(0, len(said)-lastWords):])
		case strings.Contains(string(said), s.ready):
			return nil
		case time.Now().After(late):
			return fmt.Errorf("start %s: not ready within %v: %s", s.name, startWithin, said[max(0, len(said)-lastWords):])
		}
		time.Sleep(pollEvery)
	}
}

// runs says whether the server runs; s.mu is held.
func (s *Server) runs() bool {
	if s.running == nil {
		return false
	}
	select {
	case <-s.running.ended:
		return false
	default:
		return true
	}
}

// Kill ends the server with SIGKILL and returns when it has ended. It does
// nothing if the server does not run.
func (s *Server) Kill() { s.stop(syscall.SIGKILL) }

// Restart ends the server at once, as Kill does, and starts it again.
func (s *Server) Restart() error {
	s.Kill()
	return s.Start()
}

// Close ends the server for good and removes its folder. That of a server that
// does not run is kept until End, since what else it left is written there.
func (s *Server) Close() {
	if s.stop(s.end) {
		os.RemoveAll(s.folder)
	}
}

// stop sends the signal and waits for the end; it says whether the server ran.
func (s *Server) stop(signal syscall.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs() {
		return false
	}
	s.running.signal(signal)
	if !s.running.endsWithin(startWithin) {
		s.running.signal(syscall.SIGKILL)
		<-s.running.ended
	}
	return true
}

// freePort returns a port on which nobody listens, nor on the one that is
// higher by beside.
func freePort(beside int) (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(ports)
		if isFree(port) && isFree(port+beside) {
			return port, nil
		}
	}
	return 0, errors.New("no free port was found")
}

func isFree(port int) bool {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
