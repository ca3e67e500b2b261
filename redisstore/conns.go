package redisstore

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// conns are the connections of the client that Open has made. They are left
// when what is behind the address is no master any more: the connections of
// those who come later lead to the new one, where the address is a name or a
// proxy that follows, and those that are open would stay for as long as they
// last.
type conns struct {
	mu   sync.Mutex
	open map[*leavable]struct{}
	left time.Time
}

// leavePause is how long nothing is left again: a new master takes its time.
const leavePause = time.Second

// dialer opens a connection.
type dialer = func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error)

// through returns a dialer whose connections are known, over the client's own,
// or over that of an option.
func (c *conns) through(own dialer) dialer {
	if own == nil {
		own = dial
	}
	return func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		conn, err := own(ctx, addr, d, cfg)
		if err != nil {
			return nil, err
		}
		l := &leavable{Conn: conn, conns: c}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[l] = struct{}{}
		return l, nil
	}
}

func dial(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
	if cfg != nil {
		return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, "tcp", addr)
	}
	return d.DialContext(ctx, "tcp", addr)
}

// leave closes all connections. What is on its way on them has no answer.
func (c *conns) leave() {
	c.mu.Lock()
	if time.Since(c.left) < leavePause {
		c.mu.Unlock()
		return
	}
	c.left = time.Now()
	open := c.open
	c.open = map[*leavable]struct{}{}
	c.mu.Unlock()
	for conn := range open {
		conn.Conn.Close() //nolint:errcheck // it is left.
	}
}

// leavable is a connection that leave knows.
type leavable struct {
	net.Conn

	conns *conns
}

// Close closes the connection.
func (l *leavable) Close() error {
	l.conns.mu.Lock()
	delete(l.conns.open, l)
	l.conns.mu.Unlock()
	return l.Conn.Close()
}

// demoted reports whether a server says that it is a replica: that it takes no
// writes, or that it has lost its master.
func demoted(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && (strings.HasPrefix(reply.Error(), "READONLY") || strings.HasPrefix(reply.Error(), "MASTERDOWN"))
}

// exec runs a script.
func (s *Store) exec(ctx context.Context, script *rueidis.Lua, keys, args []string) ([]rueidis.RedisMessage, error) {
	words, err := script.Exec(ctx, s.client, keys, args).ToArray()
	if s.conns != nil && demoted(err) {
		s.conns.leave()
	}
	return words, err
}
