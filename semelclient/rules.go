package semelclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel/internal/wellknown"
)

const (
	// freshFor is how old an intent may be without a look at the rules: no
	// service forgets a key within it.
	freshFor = time.Minute
	// blindFor is how old one may be that is sent while the rules cannot be read.
	blindFor = time.Hour
	// rulesFor is how long published rules are believed.
	rulesFor = 5 * time.Minute
	// maxRules bounds the document, in bytes.
	maxRules = 1 << 20
	// ahead is how far an intent's clock may be ahead of ours: more, and its
	// age is not known.
	ahead = time.Minute
)

// tooOld reports whether the service may have forgotten the key by the time that
// an attempt that begins now has arrived. The error is a fault of asking for its
// rules.
func (t *task) tooOld(ctx context.Context) (bool, error) {
	age := time.Since(t.in.Created)
	if age < -ahead {
		return true, nil
	}
	if age < freshFor {
		return false, nil
	}
	retention, err := t.client.retention(ctx, t.in)
	if err != nil {
		// A service without rules may answer anything there. One that forgets a
		// key within the hour says so.
		if age < min(blindFor, t.client.cfg.Retention) {
			return false, ctx.Err()
		}
		return false, err
	}
	return age+t.client.cfg.AttemptTimeout >= retention, nil
}

// retention returns how long the service keeps the key of an intent: as it
// publishes, or as the configuration says. Where no published endpoint is that of
// the intent, the shortest of all counts: a gateway may have changed the path.
func (c *Client) retention(ctx context.Context, in Intent) (time.Duration, error) {
	u, err := url.Parse(in.URL)
	if err != nil {
		return 0, err
	}
	published, err := c.published(ctx, origin(u))
	if err != nil {
		return 0, err
	}
	ours := func(e wellknown.Endpoint) bool { return e.Covers(in.Method, u.EscapedPath()) }
	if d, ok := shortest(published, ours); ok {
		return d, nil
	}
	if d, ok := shortest(published, func(wellknown.Endpoint) bool { return true }); ok {
		return d, nil
	}
	return c.cfg.Retention, nil
}

// shortest returns the shortest retention of the endpoints that count.
func shortest(doc *wellknown.Document, counts func(wellknown.Endpoint) bool) (d time.Duration, ok bool) {
	for _, e := range doc.Endpoints {
		if e.Retention <= 0 || !counts(e) {
			continue
		}
		own := time.Duration(min(e.Retention, int64(longest/time.Second))) * time.Second
		if !ok || own < d {
			d, ok = own, true
		}
	}
	return d, ok
}

// rulesOf is what is known of the rules of one origin.
type rulesOf struct {
	turn chan struct{} // holds one value while somebody fetches them

	mu   sync.Mutex
	last fetched
}

func (r *rulesOf) get() fetched {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *rulesOf) set(f fetched) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = f
}

// fetched is what came of fetching rules.
type fetched struct {
	doc *wellknown.Document
	err error
	at  time.Time
}

// fresh reports whether there is no need to fetch them again. A fault is new for a
// moment, so that those who waited for the same fetch do not repeat it.
func (f fetched) fresh() bool {
	if f.doc != nil {
		return time.Since(f.at) < rulesFor
	}
	return f.err != nil && time.Since(f.at) < time.Second
}

// published returns the rules of an origin, which are empty if it publishes none.
// Of many callers one fetches them.
func (c *Client) published(ctx context.Context, from string) (*wellknown.Document, error) {
	c.mu.Lock()
	known := c.rules[from]
	if known == nil {
		known = &rulesOf{turn: make(chan struct{}, 1)}
		c.rules[from] = known
	}
	c.mu.Unlock()
	if f := known.get(); f.fresh() {
		return f.doc, f.err
	}
	select {
	case known.turn <- struct{}{}:
		defer func() { <-known.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f := known.get(); f.fresh() {
		return f.doc, f.err
	}
	doc, err := c.fetchRules(ctx, from)
	if ctx.Err() == nil { // else it is this caller's fault alone
		known.set(fetched{doc, err, time.Now()})
	}
	return doc, err
}

func (c *Client) fetchRules(ctx context.Context, from string) (*wellknown.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.AttemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from+wellknown.Path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.cfg.Transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("the published rules cannot be read: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRules))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the published rules cannot be read: %w", err)
	case resp.StatusCode >= 500, isTransient(resp.StatusCode):
		return nil, fmt.Errorf("the published rules cannot be read: %s", resp.Status)
	}
	doc := new(wellknown.Document)
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, doc) != nil {
		doc.Endpoints = nil // it publishes none
	}
	return doc, nil
}

// origin is scheme, host and port of a URL.
func origin(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return strings.ToLower(u.Scheme) + "://" + host
	}
	return strings.ToLower(u.Scheme) + "://" + host + ":" + port
}
