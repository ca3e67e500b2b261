package semelclient_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelclient"
	"github.com/semel-dev/semel/semelclient/retry"
)

// listening serves each connection to a port of its own until the test ends, and
// returns the URL.
func listening(t *testing.T, serve func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	var (
		mu    sync.Mutex
		conns []net.Conn
		work  sync.WaitGroup
	)
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			work.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	return "http://" + l.Addr().String() + "/payments"
}

// rawServer answers the first request of a connection, reads the second whole and
// hangs up. It returns its URL, and the bodies it has read.
func rawServer(t *testing.T) (url string, read func() []string) {
	t.Helper()
	var (
		mu     sync.Mutex
		bodies []string
	)
	url = listening(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for n := range 2 {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			mu.Lock()
			bodies = append(bodies, string(body))
			mu.Unlock()
			if n == 0 {
				io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	return url, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), bodies...)
	}
}

func TestTransportAutoRetry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		header http.Header
		custom string
	}{
		{"the usual header", http.Header{"Idempotency-Key": {"K1"}}, ""},
		{"X-Idempotency-Key beside it", http.Header{"X-Idempotency-Key": {"K1"}}, ""},
		{"a nil one beside it", http.Header{"X-Idempotency-Key": nil}, ""},
		{"a name of its own", http.Header{"X-My-Key": {"K1"}}, "X-My-Key"},
	} {
		for _, body := range []string{"b", ""} {
			t.Run(tt.name+", body "+body, func(t *testing.T) {
				t.Parallel()
				url, read := rawServer(t)
				var observed atomic.Int32
				transport := &http.Transport{MaxConnsPerHost: 1}
				defer transport.CloseIdleConnections()
				client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{
					Transport: transport, Policy: retry.Policy{MaxAttempts: 1}, KeyHeader: tt.custom,
					ObserveFunc: func(a semelclient.Attempt) { observed.Add(int32(a.Written)) },
				})
				assert.NoError(t, err)
				send := func(header http.Header, body string) semelclient.Result {
					in, err := client.Intend(t.Context(), http.MethodPost, url, header, []byte(body))
					assert.NoError(t, err)
					return client.Do(t.Context(), in)
				}
				assert.Equal(t, send(nil, "a").Outcome, semelclient.Applied)
				r := send(tt.header, body)
				assert.Equal(t, r.Outcome, semelclient.Unknown)
				assert.Equal(t, r.Attempts, 1)
				assert.ErrorIs(t, r.Err, semelclient.ErrNoAnswer)
				assert.Equal(t, read(), []string{"a", body}, "what the server has read")
				assert.Equal(t, observed.Load(), int32(2))
			})
		}
	}
}

func TestAConnectionThatCannotBeHadIsNoAttempt(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{Policy: retry.Policy{MaxAttempts: 3}})
	assert.NoError(t, err)
	in, err := client.Intend(t.Context(), http.MethodPost, url, nil, nil)
	assert.NoError(t, err)
	r := client.Do(t.Context(), in)
	assert.Equal(t, r.Attempts, 0)
	assert.Equal(t, r.Outcome, semelclient.NotApplied)
}

func TestAttemptsAreNumberedWhetherOrNotTheyLeft(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var told []int
	refused := 2 // connections, before one is had
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		n, ok := semelclient.ResendCount(ctx)
		assert.True(t, ok, "the context is that of an attempt")
		told = append(told, n)
		if refused--; refused >= 0 {
			return nil, syscall.ECONNREFUSED
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	var seen []semelclient.Attempt
	client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{
		Transport: transport, ObserveFunc: func(a semelclient.Attempt) { seen = append(seen, a) },
	})
	assert.NoError(t, err)
	in, err := client.Intend(t.Context(), http.MethodPost, server.URL, nil, nil)
	assert.NoError(t, err)
	r := client.Do(t.Context(), in)
	assert.Equal(t, r.Outcome, semelclient.Applied)
	assert.Equal(t, r.Attempts, 1, "written to a connection")
	assert.Equal(t, told, []int{0, 1, 2}, "what a transport that traces is told")
	for i, a := range seen {
		assert.Equal(t, a.Resend, i)
	}
	assert.Equal(t, len(seen), 3)
}

func TestACertificateThatIsNotTrustedEndsIt(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{})
	assert.NoError(t, err)
	in, err := client.Intend(t.Context(), http.MethodPost, server.URL, nil, nil)
	assert.NoError(t, err)
	r := client.Do(t.Context(), in)
	assert.Equal(t, r.Outcome, semelclient.NotApplied)
	assert.Equal(t, r.Reason, semelclient.ReasonRefused)
	assert.Contains(t, r.Err.Error(), "certificate")
}

// h2Server speaks as much HTTP/2 as it takes to refuse each of the first streams
// with a code, and to answer the rest with 201.
func h2Server(t *testing.T, code byte, refuse int32) (url string, streams *atomic.Int32) {
	t.Helper()
	streams = new(atomic.Int32)
	const (
		frameHeaders, frameReset, frameSettings, framePing = 1, 3, 4, 6
		created                                            = "\x08\x03201" // :status 201
	)
	frame := func(kind, flags byte, stream []byte, payload string) string {
		return string([]byte{0, 0, byte(len(payload)), kind, flags}) + string(stream) + payload
	}
	url = listening(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		io.WriteString(conn, frame(frameSettings, 0, make([]byte, 4), ""))
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(r, head); err != nil {
				return
			}
			payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(r, payload); err != nil {
				return
			}
			switch kind, flags, stream := head[3], head[4], head[5:]; {
			case kind == frameSettings && flags == 0:
				io.WriteString(conn, frame(frameSettings, 1, stream, ""))
			case kind == framePing && flags == 0:
				io.WriteString(conn, frame(framePing, 1, stream, string(payload)))
			case kind == frameHeaders && streams.Add(1) <= refuse:
				io.WriteString(conn, frame(frameReset, 0, stream, string([]byte{0, 0, 0, code})))
			case kind == frameHeaders:
				io.WriteString(conn, frame(frameHeaders, 5, stream, created))
			}
		}
	})
	return url, streams
}

func TestH2Refused(t *testing.T) {
	t.Parallel()
	const refusedStream, internalError = 7, 2
	for _, tt := range []struct {
		name    string
		code    byte
		refuse  int32
		streams int32
		outcome semelclient.Outcome
	}{
		{"a refused stream is sent again", refusedStream, 1, 2, semelclient.Applied},
		{"so is one that was reset, since there is a key", internalError, 1, 2, semelclient.Applied},
		{"but not for ever", refusedStream, 1000, 4, semelclient.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, streams := h2Server(t, tt.code, tt.refuse)
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetUnencryptedHTTP2(true)
			defer transport.CloseIdleConnections()
			client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{
				Transport: transport, Policy: retry.Policy{MaxAttempts: 4},
			})
			assert.NoError(t, err)
			in, err := client.Intend(t.Context(), http.MethodPost, url, nil, []byte(payment))
			assert.NoError(t, err)
			r := client.Do(t.Context(), in)
			assert.Equal(t, r.Outcome, tt.outcome)
			assert.Equal(t, streams.Load(), tt.streams, "streams on the wire: %v", r.Err)
			assert.Equal(t, int32(r.Attempts), tt.streams, "streams reported")
		})
	}
	t.Run("without a key a reset stream is not sent again", func(t *testing.T) {
		t.Parallel()
		url, streams := h2Server(t, internalError, 1)
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		client, err := semelclient.New(new(semelclient.MemoryStore), semelclient.Config{Transport: transport})
		assert.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader("x"))
		assert.NoError(t, err)
		_, err = client.RoundTripper().RoundTrip(req)
		assert.True(t, err != nil, "an error")
		assert.Equal(t, streams.Load(), int32(1))
	})
}
