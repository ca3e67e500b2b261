package check

import (
	"context"
	"net"
	"net/http"
	"sync"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport has neither a proxy nor compression of its own: what is tested is
// the API. Over HTTP/1 each request has a connection to itself, so that no byte
// which a server sends too much is taken for the reply to the next request. The
// server is not told so: one that is may close before it has read the body.
func (r *run) newTransport(dial dialFunc) *http.Transport {
	return &http.Transport{
		DialContext:         afterRequest(dial),
		DisableCompression:  true,
		MaxIdleConnsPerHost: -1,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: r.cfg.RequestTimeout,
	}
}

func (r *run) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.cfg.DialContextFunc != nil {
		return r.cfg.DialContextFunc(ctx, network, address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// afterRequest dials connections that are read from when something was written. A
// server that speaks first, such as one that does not speak HTTP, would have
// net/http print a line in the program's log, and nothing else can keep it from
// that.
func afterRequest(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &shyConn{Conn: conn, ready: make(chan struct{})}, nil
	}
}

// shyConn reads when something was written, or it is closed.
type shyConn struct {
	net.Conn

	once  sync.Once
	ready chan struct{}
}

// Read waits for the first Write.
func (c *shyConn) Read(p []byte) (int, error) {
	<-c.ready
	return c.Conn.Read(p)
}

// Write lets Read begin.
func (c *shyConn) Write(p []byte) (int, error) {
	c.once.Do(func() { close(c.ready) })
	return c.Conn.Write(p)
}

// Close ends both.
func (c *shyConn) Close() error {
	c.once.Do(func() { close(c.ready) })
	return c.Conn.Close()
}
