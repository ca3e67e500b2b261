package semelclient

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semelclient/retry"
)

// run sends the intent until there is an end or no time is left.
func (t *task) run(ctx context.Context) ending {
	ctx, cancel := context.WithTimeout(ctx, t.client.cfg.Deadline)
	defer cancel()
	budget := t.client.budget(t.in.URL)
	budget.Request()
	target, renew, paid := t.in.URL, false, false
	for {
		v, written := t.attemptOnce(ctx, target, renew)
		if paid && v.act != actAgain {
			budget.Answered()
		}
		m := t.course.next(v, written)
		if m.act == actFollow {
			next, ok := t.elsewhere(target)
			if !ok {
				m = t.course.ended(v)
			}
			target = next
		} else {
			target = t.in.URL
		}
		renew, paid = m.act == actRenew, m.budgeted
		var err error
		if !m.done {
			err = t.pause(ctx, m, budget)
		}
		if (m.done && m.reason == ReasonGaveUp) || err != nil {
			t.err = errors.Join(semel.NewError(CodeGaveUp, err, "gave up after %s", count(t.course.attempts, "attempt")), t.err)
		}
		if m.done || err != nil {
			return ending{m.outcome, m.reason}
		}
	}
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// attemptOnce makes an attempt, unless the intent may be too old to be sent
// blind.
func (t *task) attemptOnce(ctx context.Context, target string, renew bool) (v verdict, written int) {
	switch old, err := t.tooOld(ctx); {
	case err != nil:
		t.err = err
		return verdict{act: actAgain, outcome: NotApplied, reason: ReasonGaveUp}, 0
	case old:
		return verdict{outcome: NotApplied, reason: ReasonTooOld}, 0
	}
	t.lastTry = time.Now()
	a := t.client.send(ctx, t, target, renew)
	t.err = a.err
	if a.reply != nil {
		t.last = a.reply
	}
	return a.verdict, a.written
}

// pause waits before the next attempt. The error says why there is none.
func (t *task) pause(ctx context.Context, m move, budget *retry.Budget) error {
	wait := m.wait
	for n := m.backoff; ; n++ {
		if n > 0 {
			jitter := t.client.cfg.Policy.Wait(n, m.throttled)
			wait = min(wait, longest-jitter) + jitter
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		if !m.budgeted || budget.Retry() {
			return nil
		}
		wait = 0 // it has been waited; now for the budget
	}
}

// sleep waits for d. It returns an error, and at once, if ctx has ended, ends,
// or has a deadline before d is over: a wait that outlives the deadline is none.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// elsewhere returns where a redirect leads, if that is at the same origin: the
// key means nothing anywhere else, and is shown to nobody else.
func (t *task) elsewhere(from string) (string, bool) {
	base, err := url.Parse(from)
	if err != nil {
		return "", false
	}
	to, err := base.Parse(t.last.header.Get("Location"))
	if err != nil || t.last.header.Get("Location") == "" || origin(to) != origin(base) {
		return "", false
	}
	to.Fragment = ""
	return to.String(), true
}

// budget returns the retry budget of a URL's host.
func (c *Client) budget(target string) *retry.Budget {
	host := ""
	if u, err := url.Parse(target); err == nil {
		host = u.Host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.budgets[host]
	if b == nil {
		b = new(retry.Budget)
		c.budgets[host] = b
	}
	return b
}
