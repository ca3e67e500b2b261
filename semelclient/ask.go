package semelclient

import (
	"context"
	"time"

	"github.com/semel-dev/semel"
)

// ask puts the question of Config.AskFunc where the end is unknown.
func (t *task) ask(ctx context.Context, end ending) ending {
	question := t.client.cfg.AskFunc
	if question == nil || ctx.Err() != nil {
		return end
	}
	still := t.stillUnderWay(end)
	ctx, cancel := context.WithTimeout(ctx, t.client.cfg.AttemptTimeout)
	defer cancel()
	outcome, err := question(ctx, t.in.clone())
	switch {
	case err != nil:
		t.err = semel.NewError(CodeNoAnswer, err, "Config.AskFunc could not tell")
	case outcome == Applied, outcome == NotApplied && !still:
		t.last, t.err = nil, nil // it is not the reply that tells
		return ending{outcome, ReasonAsked}
	}
	return end
}

// stillUnderWay reports whether an attempt may take effect after the question is
// answered, so that "there is none" tells nothing. It is measured on the monotonic
// clock, from what this process has seen itself.
func (t *task) stillUnderWay(end ending) bool {
	if end.reason == ReasonFinalError || end.reason == ReasonReplyHidden {
		return false // the service says that the work is over
	}
	since := t.lastTry
	if since.IsZero() {
		since = t.client.oldSince(t.in.Key)
	}
	return time.Since(since) < t.client.cfg.SettleAfter
}

// oldSince returns when this client first found that an intent is too old to be
// sent, so that nobody sends it any more.
func (c *Client) oldSince(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.old[key]
	if !ok {
		since = time.Now()
		c.old[key] = since
	}
	return since
}

// forgetOld forgets what oldSince remembers of an intent that has its end.
func (c *Client) forgetOld(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.old, key)
}
