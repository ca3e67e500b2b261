// Package memhttp is an http.Server on connections that are in memory, so that
// a test inside a synctest bubble can use the real server, with its deadlines
// on the bubble's clock. It does not show what a network does: for that, tests
// use httptest.
package memhttp

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Server serves a handler until the test ends.
type Server struct {
	listener *listener
	client   *http.Client
}

// New starts a server for handler, changed as told. What the server itself logs
// is dropped.
func New(t testing.TB, handler http.Handler, change ...func(*http.Server)) *Server {
	t.Helper()
	l := &listener{accept: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{
		Handler:  handler,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, f := range change {
		f(server)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l) //nolint:errcheck // it ends by Close.
	}()
	// A connection for each request: on a used one the transport would send a
	// request with a key again by itself.
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return l.dial() },
		DisableKeepAlives: true,
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-served
	})
	return &Server{listener: l, client: &http.Client{Transport: transport}}
}

// URL is an address that Client reaches the server by.
func (s *Server) URL() string { return "http://mem.test" }

// Client returns a client of this server alone.
func (s *Server) Client() *http.Client { return s.client }

// Dial opens a connection, for tests that write their own bytes.
func (s *Server) Dial() (net.Conn, error) { return s.listener.dial() }

type listener struct {
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

var _ net.Listener = (*listener)(nil)

func (l *listener) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.accept <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Accept returns the next connection that was dialled.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and dial fail.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr names no place.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "mem.test", Net: "mem"} }
