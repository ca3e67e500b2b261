package check

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// controls is how many operations are executed to learn what a reply says of
	// its execution. By chance two small numbers may be the same, three hardly.
	controls = 3
	// repeatTime is how long the repetition of an operation that has its reply may
	// find it in use.
	repeatTime = 3 * time.Second
)

// learn executes some operations to see that the API works at all, what in a
// reply tells one execution from another, and how a repetition is answered. It
// returns what keeps anything from being tested.
func (r *run) learn(ctx context.Context) string {
	s := &session{run: r, began: time.Now()}
	before, err := r.countIfObserved(ctx)
	if err != nil {
		return err.Error()
	}
	calls := make([]call, controls)
	executed := make([]Exchange, controls)
	for i := range executed {
		calls[i] = r.newCall()
		x := s.send(ctx, calls[i])
		if i == 0 && x.redirects() {
			r.redirect = x.Status
		}
		if x.redirect = r.redirect; !x.succeeded() {
			return unusable(x)
		}
		r.slowest = max(r.slowest, x.Took)
		executed[i] = x
	}
	r.executed = executed[0]
	r.marks = newMarks(executed, r.target.Ignore)
	if why := r.elsewhere(executed); why != "" {
		return why
	}
	after, err := r.countIfObserved(ctx)
	if err != nil {
		return err.Error()
	}
	if r.target.Observe != nil {
		r.step = (after - before) / controls
		if r.step < 1 || (after-before)%controls != 0 {
			return fmt.Sprintf("%d operations under new keys changed what is counted from %d to %d: it must rise by the same number for each", controls, before, after)
		}
	}
	r.repeated = s.settledWithin(ctx, calls[0], repeatTime)
	return ""
}

func (r *run) countIfObserved(ctx context.Context) (int, error) {
	if r.target.Observe == nil {
		return 0, nil
	}
	return r.count(ctx)
}

// refusesRepeats reports whether a reply is the refusal that each repetition gets
// of an operation that has its reply.
func (r *run) refusesRepeats(x Exchange) bool {
	return r.repeated.Status != 0 && !r.repeated.succeeded() && x.Status == r.repeated.Status
}

// elsewhere finds an address that only leads to another one, as http to https.
func (r *run) elsewhere(executed []Exchange) string {
	if r.redirect == 0 || r.target.Observe != nil {
		return ""
	}
	location := executed[0].ReplyHeader.Get(locationLeaf)
	for _, x := range executed {
		if x.ReplyHeader.Get(locationLeaf) != location {
			return ""
		}
	}
	return fmt.Sprintf("%d operations under new keys were answered with %d and the one Location %q, which names no execution: give that address if the operation is there, or let effects be counted", controls, r.redirect, location)
}

// unusable says why nothing can be tested, and where to look.
func unusable(x Exchange) string {
	return "a request under a new key must succeed before anything can be tested; it got " + x.result() + advice(x)
}

func advice(x Exchange) string {
	switch {
	case x.Status == 0 && strings.Contains(x.Err, "x509:"):
		return ". SSL_CERT_FILE names a file of certificates to trust instead of the machine's"
	case x.Status == 0:
		return ". Is the service up, and the address right?"
	case x.Status >= 300 && x.Status < 400:
		return ". It wants the request at another address: give that one"
	case x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden:
		return ". It wants to know who asks: give a credential"
	case x.Status == http.StatusNotFound || x.Status == http.StatusMethodNotAllowed:
		return ". Are address and method right?"
	case x.conflicts():
		return ". Nobody has used this key before. Does it refuse a second order of one number? {{unique}} in the body makes each another"
	case x.Status == http.StatusTooManyRequests:
		return ". A limit turns requests away: lift it where the check runs, or let the check be slower"
	case x.refused():
		return ". Is the body a good request, and its Content-Type right? Does it want keys without quotes, or in another field?"
	}
	return ". The service fails, so nothing can be said of repetitions"
}
