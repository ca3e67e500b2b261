package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// maxReply is how much of a reply's body is read and compared, in bytes.
const maxReply = 1 << 20

// call is one operation: a key with the bytes that belong to it.
type call struct {
	method, url string
	keys        []string // the lines of the key's field; none leaves it out
	body        []byte
	header      http.Header
	anonymous   bool // without what proves who the caller is
	lastOfConn  bool // asks the server to close the connection after the reply
	chunked     bool // without saying how long the body is
}

// newCall is an operation with a key of its own and the target's body.
func (r *run) newCall() call { return r.newCallOf(r.target.Body) }

func (r *run) newCallOf(body []byte) call {
	return call{
		method: r.target.Method,
		url:    r.target.URL,
		keys:   []string{r.quote(newKey())},
		body:   bytes.ReplaceAll(body, []byte("{{unique}}"), []byte(uuid.NewString())),
		header: r.target.Header.Clone(),
	}
}

// newKey is never chosen by a seed: a key of an earlier run would be answered
// with that run's reply.
func newKey() string { return uuid.Must(uuid.NewV7()).String() }

func (r *run) quote(key string) string {
	if r.target.BareKeys {
		return key
	}
	return `"` + key + `"`
}

// with returns the call with another body under the same key.
func (c call) with(body []byte) call {
	c.body = body
	return c
}

// under returns the call with other lines for its key.
func (c call) under(keys ...string) call {
	c.keys = keys
	return c
}

// set returns the call with one field more.
func (c call) set(name, value string) call {
	c.header = c.header.Clone()
	if c.header == nil {
		c.header = make(http.Header)
	}
	c.header.Set(name, value)
	return c
}

// session is the exchanges of one case.
type session struct {
	run   *run
	began time.Time
	mu    sync.Mutex
	sent  []Exchange
}

// send sends a call and notes what came back. An error on the way is noted in
// the exchange: what it means is for the case to say.
func (s *session) send(ctx context.Context, c call) Exchange {
	return s.sendBy(ctx, s.run.client, c)
}

func (s *session) sendBy(ctx context.Context, client *http.Client, c call) Exchange {
	s.run.pace(ctx)
	x := s.exchange(ctx, client, c)
	if x.Status == http.StatusUnauthorized && !c.anonymous && s.run.target.AuthorizeFunc != nil {
		s.run.askAgain()
		x = s.exchange(ctx, client, c)
	}
	for left := longestWait; x.Status == http.StatusTooManyRequests && !s.run.refusesRepeats(x); {
		if left -= x.asked(); left < 0 || !wait(ctx, x.asked()) {
			break
		}
		x = s.exchange(ctx, client, c)
	}
	s.note(x)
	return x
}

// sendAtOnce sends all calls at the same time.
func (s *session) sendAtOnce(ctx context.Context, calls []call) []Exchange {
	got := make([]Exchange, len(calls))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			<-start
			got[i] = s.exchange(ctx, s.run.client, c)
			got[i].AtOnce = i > 0
		})
	}
	close(start)
	wg.Wait()
	s.note(got...)
	return got
}

func (s *session) note(xs ...Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, xs...)
}

func (s *session) exchange(ctx context.Context, client *http.Client, c call) Exchange {
	ctx, cancel := context.WithTimeout(ctx, s.run.cfg.RequestTimeout)
	defer cancel()
	x := Exchange{After: time.Since(s.began), Method: c.method, URL: c.url, Body: c.body, redirect: s.run.redirect}
	req, err := s.run.request(ctx, c)
	if err != nil {
		x.Err = err.Error()
		return x
	}
	x.Header = req.Header.Clone()
	sent := time.Now()
	resp, err := client.Do(req)
	if err == nil {
		x.Status, x.ReplyHeader = resp.StatusCode, resp.Header
		x.ReplyBody, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
		resp.Body.Close()
	}
	x.Took = time.Since(sent)
	if err != nil {
		x.Status, x.Err = 0, reason(err)
	}
	return x
}

// reason leaves the address out of an error of net/http: the exchange has it.
func reason(err error) string {
	var of interface{ Unwrap() error }
	if errors.As(err, &of) {
		if inner := of.Unwrap(); inner != nil {
			return inner.Error()
		}
	}
	return err.Error()
}

// request makes the request of a call. It has no GetBody, and a connection to
// itself: net/http sends a keyed request a second time by itself else, and the
// checker would not know (R20).
func (r *run) request(ctx context.Context, c call) (*http.Request, error) {
	var body io.Reader
	if len(c.body) > 0 {
		body = struct{ io.Reader }{bytes.NewReader(c.body)}
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(c.body))
	if c.chunked {
		req.ContentLength = -1
	}
	req.Close = c.lastOfConn
	maps.Copy(req.Header, c.header)
	if c.anonymous {
		maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return isSecret(name) })
	}
	if !c.anonymous {
		auth, err := r.authorization(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking for authorization: %w", err)
		}
		maps.Copy(req.Header, auth)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if len(c.keys) > 0 {
		req.Header[http.CanonicalHeaderKey(r.target.KeyHeader)] = c.keys
	}
	return req, nil
}
