package semelclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semelclient/retry"
)

// Client sends intents. It is safe for concurrent use; a program has one for all
// its callers, since they share the retry budget of each host.
type Client struct {
	store IntentStore
	cfg   Config

	mu      sync.Mutex
	budgets map[string]*retry.Budget // by host
	rules   map[string]*rulesOf      // by origin
	old     map[string]time.Time     // since when an intent is known to be too old
}

// New returns a client that keeps its intents in store. It starts nothing. The
// error matches semel.ErrConfig.
func New(store IntentStore, cfg Config) (*Client, error) {
	if store == nil {
		return nil, semel.NewError(semel.CodeConfig, nil, "semelclient: there is no store of intents; MemoryStore is one that forgets")
	}
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Client{
		store: store, cfg: cfg,
		budgets: make(map[string]*retry.Budget), rules: make(map[string]*rulesOf), old: make(map[string]time.Time),
	}, nil
}

const (
	// storeTimeout is how long the store is waited for when there is nothing
	// else left to wait for.
	storeTimeout = 5 * time.Second
	// holdMargin is what a hold is longer than the work it is for.
	holdMargin = 4 * storeTimeout
)

// Intend makes an intent of a request and stores it. Not a byte is sent. The key
// is the one in header, in Config.KeyHeader, or else a new UUIDv7. One that is
// kept with what the intent is for, before this call, finds the two together again
// after a crash.
//
// The error matches ErrIntentInvalid or semel.ErrKeyInvalid, or ErrIntentKnown
// if the key has an intent already, or ErrIntentStore. Nothing was sent and
// nothing will be, except where the last one says that the intent may be stored
// all the same: then Recover would send it.
func (c *Client) Intend(ctx context.Context, method, url string, header http.Header, body []byte) (Intent, error) {
	in, err := c.newIntent(method, url, header, body)
	if err != nil {
		return Intent{}, err
	}
	return c.add(ctx, in)
}

func (c *Client) add(ctx context.Context, in Intent) (Intent, error) {
	// Do may begin as late as a whole deadline after this.
	hold, err := c.store.Add(ctx, in, 2*c.cfg.Deadline+holdMargin)
	switch {
	case errors.Is(err, ErrIntentKnown):
		return Intent{}, err
	case err != nil:
		return Intent{}, storeFailed(err, "keep the intent")
	}
	own := in.clone()
	in.first = &firstUse{intent: own, hold: hold, until: time.Now().Add(c.cfg.Deadline)}
	return in, nil
}

// Forget removes an intent, once its outcome is where it belongs. One that is
// not settled is given up with it: nobody will learn what became of it.
func (c *Client) Forget(ctx context.Context, key string) error {
	if err := c.store.Forget(ctx, key); err != nil {
		return storeFailed(err, "forget an intent")
	}
	c.forgetOld(key)
	return nil
}

// Do sends an intent until it is known whether it took effect, or time is up,
// and returns what is known. It never returns an error: what went wrong is in the
// result, beside an outcome that says what it means for the intent. When ctx ends
// it returns at once.
//
// What is sent is what was stored. An intent that is settled is not sent: its
// result is returned again, until Forget. One that is Unknown stays stored, for
// another Do or for Recover, and one that somebody else is at work on is Unknown
// with ReasonHeld.
func (c *Client) Do(ctx context.Context, in Intent) Result {
	return c.do(ctx, &task{in: in}).Result
}

// finished is a result with the response it came from, if there is one.
type finished struct {
	Result

	response *http.Response
}

func (c *Client) do(ctx context.Context, t *task) finished {
	t.client = c
	t.course = course{maxAttempts: c.cfg.Policy.MaxAttempts, mayRenew: c.cfg.AuthorizeFunc != nil}
	if done, ok := t.hold(ctx); ok {
		return done
	}
	end := t.run(ctx)
	if end.outcome == Unknown {
		end = t.ask(ctx, end)
	}
	return t.settle(ctx, end)
}

// task is one call of Do.
type task struct {
	client *Client
	in     Intent
	own    http.Header // credentials for this call alone
	strict bool        // what is stored has to be the same request
	token  Hold
	course course

	sent    int       // attempts of this call, whether or not they left
	lastTry time.Time // when the last of them began; zero if there was none

	last *reply
	err  error
}

// ending is how a task ended.
type ending struct {
	outcome Outcome
	reason  Reason
}

// hold takes the intent. It returns a result, and true, if there is nothing to
// be sent.
func (t *task) hold(ctx context.Context) (finished, bool) {
	c := t.client
	first := t.in.first.take()
	if first != nil {
		t.in, t.token = first.intent, first.hold
		if time.Now().Before(first.until) {
			return finished{}, false
		}
		// The hold may end before the work does.
		if err := c.store.Release(ctx, first.hold); err != nil {
			return t.without(ReasonStore, storeFailed(err, "renew a hold")), true
		}
	}
	entry, err := c.store.Hold(ctx, t.in.Key, c.cfg.Deadline+holdMargin)
	switch {
	case errors.Is(err, ErrIntentHeld):
		return t.without(ReasonHeld, err), true
	case err != nil:
		return t.without(ReasonStore, storeFailed(err, "take an intent")), true
	}
	if t.strict && !t.in.same(entry.Intent) {
		err = errors.Join(c.store.Release(ctx, entry.Hold), ErrIntentKnown)
		return t.without(ReasonStore, err), true
	}
	t.in, t.token = entry.Intent, entry.Hold
	if s := entry.Settlement; s != nil {
		return t.settledBefore(s), true
	}
	t.course.open = true // an earlier call may have sent it
	return finished{}, false
}

// without is the result of a call that sent nothing and knows nothing.
func (t *task) without(reason Reason, err error) finished {
	return finished{Result: Result{Reason: reason, Intent: t.in, Err: err}}
}

func (t *task) settledBefore(s *Settlement) finished {
	header := s.Header
	if header == nil {
		header = make(http.Header)
	}
	response := &http.Response{StatusCode: s.Status, Header: header, ProtoMajor: 1, ProtoMinor: 1, Proto: "HTTP/1.1"}
	f := t.result(ending{s.Outcome, s.Reason}, newReply(response, s.Body, s.Truncated))
	f.Replayed = true
	return f
}

// settle writes the end down, if it is one, and returns the result.
func (t *task) settle(ctx context.Context, end ending) finished {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if end.outcome == Unknown {
		if err := t.client.store.Release(ctx, t.token); err != nil {
			t.err = errors.Join(t.err, storeFailed(err, "let go of an intent"))
		}
		return t.result(end, t.last)
	}
	s := Settlement{Outcome: end.outcome, Reason: end.reason}
	if r := t.last; r != nil {
		s.Status, s.Header, s.Body, s.Truncated, s.Replayed = r.status, r.header, r.body, r.truncated, r.replayed()
	}
	if err := t.client.store.Settle(ctx, t.token, s); err != nil {
		t.err = errors.Join(t.err, storeFailed(err, "keep how an intent ended"))
		if err := t.client.store.Release(ctx, t.token); err != nil {
			t.err = errors.Join(t.err, storeFailed(err, "let go of an intent"))
		}
		// It may be sent again, and what did not take effect may do so then.
		if end.outcome == NotApplied {
			end = ending{Unknown, ReasonStore}
		}
	}
	t.client.forgetOld(t.in.Key)
	return t.result(end, t.last)
}

func (t *task) result(end ending, last *reply) finished {
	r := Result{Outcome: end.outcome, Reason: end.reason, Intent: t.in.clone(), Attempts: t.course.attempts, Err: t.err}
	if last == nil || last.status == 0 {
		return finished{Result: r}
	}
	r.Status, r.Header, r.Body, r.Truncated = last.status, last.header, last.body, last.truncated
	r.Replayed, r.Problem = last.replayed(), last.problem
	return finished{Result: r, response: last.response}
}
