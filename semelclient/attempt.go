package semelclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// tried is how one attempt ended.
type tried struct {
	verdict verdict
	written int    // requests on the wire
	reply   *reply // if a whole one came
	err     error
}

// attemptKey finds, in the context of a request that a client sends, which
// attempt it is.
type attemptKey struct{}

type attempt struct {
	key    string // of the intent
	resend int
}

// ResendCount returns, from the context of a request that a client sends, which
// attempt it is: 0 for the first of a call, then 1, 2, …. A Transport that traces
// sets the attribute http.request.resend_count to it.
func ResendCount(ctx context.Context) (n int, ok bool) {
	a, ok := ctx.Value(attemptKey{}).(attempt)
	return a.resend, ok
}

// isAttempt reports whether a request is an attempt of another client, whose
// Transport this one is: that one sends it again, or does not.
func isAttempt(ctx context.Context, key string) bool {
	a, ok := ctx.Value(attemptKey{}).(attempt)
	return ok && a.key == key
}

// send makes one attempt.
func (c *Client) send(ctx context.Context, t *task, target string, renew bool) tried {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.AttemptTimeout)
	defer cancel()
	var w wire
	resend := t.sent
	t.sent++
	ctx = context.WithValue(w.traced(ctx), attemptKey{}, attempt{t.in.Key, resend})
	a := c.exchange(ctx, t, target, renew, &w)
	if c.cfg.ObserveFunc != nil {
		seen := Attempt{
			Key: t.in.Key, Method: t.in.Method, URL: target, Resend: resend, Written: a.written,
			Err: a.err, Duration: time.Since(begun),
		}
		if a.reply != nil {
			seen.Status, seen.Replayed = a.reply.status, a.reply.replayed()
		}
		c.cfg.ObserveFunc(seen)
	}
	return a
}

// exchange sends a request and reads its reply.
func (c *Client) exchange(ctx context.Context, t *task, target string, renew bool, w *wire) tried {
	req, err := t.request(ctx, target)
	if err == nil && c.cfg.AuthorizeFunc != nil {
		err = c.cfg.AuthorizeFunc(req, renew)
	}
	if err != nil {
		return neverLeft(err)
	}
	resp, err := c.cfg.Transport.RoundTrip(req)
	if err != nil {
		if w.nothing() {
			return neverLeft(err)
		}
		return noAnswer(err, w)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.cfg.MaxReply+1))
	resp.Body.Close()
	if err != nil {
		return noAnswer(err, w)
	}
	truncated := int64(len(body)) > c.cfg.MaxReply
	if truncated {
		body = body[:c.cfg.MaxReply]
	}
	r := newReply(resp, body, truncated)
	return tried{verdict: judgeReply(r), written: w.count(), reply: r}
}

// neverLeft is an attempt of which no byte was written.
func neverLeft(err error) tried {
	v := verdict{act: actAgain, outcome: NotApplied, reason: ReasonGaveUp}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		v.act, v.reason = actStop, ReasonRefused // it will be no better in a minute
	}
	return tried{verdict: v, err: err}
}

// noAnswer is one that was written and has no known end.
func noAnswer(err error, w *wire) tried {
	return tried{
		verdict: verdict{act: actAgain, open: true, reason: ReasonGaveUp}, written: w.count(),
		err: errors.Join(ErrNoAnswer, err),
	}
}

// request builds one attempt.
func (t *task) request(ctx context.Context, target string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, t.in.Method, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header = t.in.Header.Clone()
	maps.Copy(req.Header, t.own)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	req.ContentLength = int64(len(t.in.Body))
	req.Body = &once{Reader: bytes.NewReader(t.in.Body)}
	return req, nil
}

// once is a body that the transport cannot rewind, also an empty one. It would
// send a request with an Idempotency-Key again by itself, uncounted, and once
// more after the caller has given up, if it could (R20, golang/go#19943).
type once struct{ io.Reader }

// Close implements io.Closer.
func (*once) Close() error { return nil }

// wire is what the transport did with one attempt.
type wire struct{ asked, got, wrote, began atomic.Int32 }

func (w *wire) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { w.asked.Add(1) },
		GotConn:      func(httptrace.GotConnInfo) { w.got.Add(1) },
		WroteHeaders: func() { w.wrote.Add(1) },
		// In HTTP/2 a stream may be reset before WroteHeaders is told.
		WroteHeaderField: func(name string, _ []string) {
			if name == ":method" {
				w.began.Add(1)
			}
		},
	})
}

// nothing reports that surely no byte was written: the transport looked for a
// connection and got none. A transport without these hooks leaves it open.
func (w *wire) nothing() bool { return w.asked.Load() > 0 && w.got.Load() == 0 }

// count is how many requests were written; of a transport without hooks, one.
func (w *wire) count() int {
	if w.asked.Load() == 0 {
		return 1
	}
	return int(max(w.wrote.Load(), w.began.Load()))
}
