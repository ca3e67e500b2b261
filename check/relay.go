package check

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
)

// fault is what a relay does to one connection.
type fault struct {
	// cutReply ends the connection after so many bytes of the reply, which the
	// relay itself reads to its end. Negative: all of it passes.
	cutReply int
	// cutRequest ends both sides after so many bytes of the request. Negative: all
	// of it passes.
	cutRequest int
	// reset ends the client's side with a reset, not in good order.
	reset bool
	// stall leaves the client's side open where it would be cut.
	stall bool
}

// relay stands between the checker and the API on the loopback interface, and
// loses what it is told to. It hears the whole reply all the same, so that the
// checker knows what became of the request that its client does not know of.
type relay struct {
	listener net.Listener
	target   *url.URL
	fault    fault
	ended    sync.WaitGroup
	mu       sync.Mutex
	heard    []byte
}

// newRelay starts a relay to the host of address. TLS ends in it: towards its
// client it speaks plain HTTP.
func newRelay(ctx context.Context, address string, f fault) (*relay, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: u, fault: f}
	r.ended.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.ended.Go(func() { r.serve(ctx, conn) })
		}
	})
	return r, nil
}

// close ends the relay when what is under way has ended.
func (r *relay) close() {
	r.listener.Close()
	r.ended.Wait()
}

// reply is the one reply that was heard; false means that there was none, or
// not all of it.
func (r *relay) reply(method string) (Exchange, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.heard)), &http.Request{Method: method})
	if err != nil {
		return Exchange{}, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	return Exchange{Status: resp.StatusCode, ReplyHeader: resp.Header, ReplyBody: body}, err == nil
}

func (r *relay) dialTarget(ctx context.Context) (net.Conn, error) {
	host := r.target.Host
	if r.target.Port() == "" {
		host = net.JoinHostPort(r.target.Hostname(), map[string]string{"http": "80", "https": "443"}[r.target.Scheme])
	}
	var d net.Dialer
	if r.target.Scheme == "https" {
		return (&tls.Dialer{NetDialer: &d, Config: &tls.Config{ServerName: r.target.Hostname(), NextProtos: []string{"http/1.1"}}}).DialContext(ctx, "tcp", host)
	}
	return d.DialContext(ctx, "tcp", host)
}

func (r *relay) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := r.dialTarget(ctx)
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	var upstream sync.WaitGroup
	upstream.Go(func() { r.forward(client, server) })
	r.back(client, server)
	client.Close()
	upstream.Wait()
}

// forward carries the request.
func (r *relay) forward(client, server net.Conn) {
	if r.fault.cutRequest < 0 {
		io.Copy(server, client) //nolint:errcheck // either side may end at any time: that is what a relay is for.
		return
	}
	io.CopyN(server, client, int64(r.fault.cutRequest)) //nolint:errcheck // as above.
	server.Close()
	client.Close()
}

// back carries the reply as far as it may go, and hears the rest.
func (r *relay) back(client, server net.Conn) {
	passed := 0
	buf := make([]byte, 4096)
	for {
		n, err := server.Read(buf)
		r.mu.Lock()
		r.heard = append(r.heard, buf[:n]...)
		r.mu.Unlock()
		pass := buf[:n]
		if r.fault.cutReply >= 0 {
			pass = pass[:min(n, max(0, r.fault.cutReply-passed))]
		}
		client.Write(pass) //nolint:errcheck // the client may have left.
		passed += n
		if r.fault.cutReply >= 0 && passed >= r.fault.cutReply && n > 0 {
			r.cut(client)
		}
		if err != nil {
			return
		}
	}
}

// cut ends the client's side, or lets it wait.
func (r *relay) cut(client net.Conn) {
	if r.fault.stall {
		return
	}
	if tcp, ok := client.(*net.TCPConn); ok && r.fault.reset {
		tcp.SetLinger(0) //nolint:errcheck // then it ends in good order.
	}
	client.Close()
}
