package check

import (
	"context"
	"fmt"
)

// shared is what several cases look at, so that it is made once: each operation
// has real effects in the system under test.
type shared struct {
	pair     *pair
	mismatch *mismatch
}

// pair is an operation and its repetition.
type pair struct {
	call         call
	first, again Exchange
	seen         sighting
	history      []Exchange
}

// pair sends an operation twice, one after the other.
func (s *session) pair(ctx context.Context) pair {
	if s.run.shared.pair == nil {
		p := pair{call: s.run.newCall()}
		p.seen = s.watch(ctx, func() []Exchange {
			p.first = s.send(ctx, p.call)
			p.again = s.send(ctx, p.call)
			return []Exchange{p.first, p.again}
		})
		p.history = s.sent
		s.run.shared.pair = &p
	}
	s.sent = s.run.shared.pair.history
	return *s.run.shared.pair
}

// replayed returns the pair when its second reply can be held against the first.
func (s *session) replayed(ctx context.Context) (pair, *outcome) {
	p := s.pair(ctx)
	if !p.first.succeeded() {
		o := setupFailed("the first request got %s", p.first.result())
		return p, &o
	}
	if !p.again.succeeded() {
		o := inconclusive("the repetition is not replayed: it got %s", p.again.result())
		return p, &o
	}
	return p, nil
}

// mismatch is an operation, and another request under its key.
type mismatch struct {
	call                call // of the first
	first, other, after Exchange
	seen                sighting // all three together
	history             []Exchange
}

// mismatch sends an operation, another body under its key, and the operation
// again. The outcome is set when there is no other body, or it is not accepted
// under a key of its own, so that a refusal would say nothing of the key.
func (s *session) mismatch(ctx context.Context) (mismatch, *outcome) {
	if s.run.shared.mismatch == nil {
		m := mismatch{call: s.run.newCall()}
		body, err := s.run.otherBody(m.call)
		if err != nil {
			o := skip("%v", err)
			return m, &o
		}
		if x := s.send(ctx, s.run.newCallOf(body)); !x.succeeded() {
			o := setupFailed("the other body is not accepted under a key of its own, so its refusal would say nothing: it got %s", x.result())
			return m, &o
		}
		s.sent = nil
		m.seen = s.watch(ctx, func() []Exchange {
			m.first = s.send(ctx, m.call)
			m.other = s.send(ctx, m.call.with(body))
			m.after = s.send(ctx, m.call)
			return []Exchange{m.first, m.other, m.after}
		})
		m.history = s.sent
		s.run.shared.mismatch = &m
	}
	s.sent = s.run.shared.mismatch.history
	if m := *s.run.shared.mismatch; !m.first.succeeded() {
		o := setupFailed("the first request got %s", m.first.result())
		return m, &o
	}
	return *s.run.shared.mismatch, nil
}

// otherBody is a good request that is not the one of c.
func (r *run) otherBody(c call) ([]byte, error) {
	if r.target.OtherBody != nil {
		return r.target.OtherBody, nil
	}
	if len(c.body) == 0 {
		return nil, fmt.Errorf("the request has no body that could differ")
	}
	return changed(c.body, r.target.MismatchPointer)
}
