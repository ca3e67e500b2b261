package check

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"sync"
)

// fault is what a relay does to one connection.
type fault struct {
	// cutReply ends the client's side after so many bytes of the reply, which the
	// relay itself hears to its end. Negative: all of it passes.
	cutReply int
	// cutRequest ends both sides after so many bytes of the request's body.
	// Negative: all of it passes.
	cutRequest int
	// stall leaves the client's side open where the reply would be cut, until the
	// client ends it.
	stall bool
}

// String says what becomes of the exchange.
func (f fault) String() string {
	switch {
	case f.stall:
		return "a relay held the reply back until the client gave up"
	case f.cutRequest >= 0:
		return fmt.Sprintf("a relay cut the request after %d bytes of its body", f.cutRequest)
	}
	return fmt.Sprintf("a relay cut the reply after %d bytes", f.cutReply)
}

// relay stands in the checker's own connection to the API, and loses what it is
// told to. It hears the whole reply all the same, so that the checker knows
// what became of the request that its client does not know of. TLS ends in it:
// towards its client it speaks plain HTTP.
type relay struct {
	dial  dialFunc
	fault fault
	ended sync.WaitGroup
	mu    sync.Mutex
	heard []byte
	begun chan struct{} // closed with the first byte of the reply
}

// DialContext connects to the API and returns the client's end of the relay.
func (r *relay) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	server, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	r.ended.Go(func() { r.forward(near, server) })
	r.ended.Go(func() { r.back(near, server) })
	return client, nil
}

// wait waits until both sides of each connection have ended, or ctx has.
func (r *relay) wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		r.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// forward carries the request. Where the reply is held back, the client is who
// ends the connection.
func (r *relay) forward(client, server net.Conn) {
	if r.fault.cutRequest < 0 {
		io.Copy(server, client) //nolint:errcheck // either side may end at any time: that is what a relay is for.
		if r.fault.stall {
			server.Close()
			client.Close()
		}
		return
	}
	in := textproto.NewReader(bufio.NewReader(client))
	for line := "-"; line != ""; {
		var err error
		if line, err = in.ReadLine(); err != nil {
			break
		}
		io.WriteString(server, line+"\r\n") //nolint:errcheck // as above.
	}
	io.CopyN(server, in.R, int64(r.fault.cutRequest)) //nolint:errcheck // as above.
	server.Close()
	client.Close()
}

// back carries the reply as far as it may go, and hears the rest.
func (r *relay) back(client, server net.Conn) {
	if !r.fault.stall {
		defer client.Close()
	}
	defer server.Close()
	passed := 0
	buf := make([]byte, 4096)
	for {
		n, err := server.Read(buf)
		r.hear(buf[:n])
		pass := buf[:n]
		if r.fault.cutReply >= 0 {
			pass = pass[:min(n, max(0, r.fault.cutReply-passed))]
		}
		if len(pass) > 0 {
			client.Write(pass) //nolint:errcheck // the client may have left.
		}
		if passed += n; r.fault.cutReply >= 0 && passed > r.fault.cutReply && !r.fault.stall {
			client.Close()
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) hear(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.heard) == 0 && len(p) > 0 {
		close(r.begun)
	}
	r.heard = append(r.heard, p...)
}

// reply is the one reply that was heard. Its status is 0 when there was none, or
// not all of it.
func (r *relay) reply(method string) Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.heard)), &http.Request{Method: method})
	if err != nil {
		return Exchange{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return Exchange{}
	}
	return Exchange{Status: resp.StatusCode, ReplyHeader: resp.Header, ReplyBody: body}
}

// throughTLS dials like dial, and begins TLS where the target asks for it.
func throughTLS(target *url.URL, dial dialFunc) dialFunc {
	if target.Scheme != "https" {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, &tls.Config{ServerName: target.Hostname(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, err
		}
		return conn, nil
	}
}

// plainURL is the address of the target for the relay's client: the same host and
// port, without TLS.
func plainURL(u *url.URL) string {
	plain := *u
	plain.Scheme = "http"
	if u.Scheme == "https" && u.Port() == "" {
		plain.Host = net.JoinHostPort(u.Hostname(), "443")
	}
	return plain.String()
}
