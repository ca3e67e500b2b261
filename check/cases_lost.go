package check

import (
	"context"
	"net"
	"net/http/httptrace"
	"net/url"
	"time"
)

const lostFix = "Save the reply with the work in one transaction, and do not let the work end with the connection that asked for it."

var lostCases = []Case{
	lostReply("lost/reply", "the whole reply is lost", func(*run) fault { return fault{cutReply: 0, cutRequest: -1} }),
	lostReply("lost/reply-cut", "the reply is cut in its midst", func(r *run) fault {
		return fault{cutReply: 1 + r.random.IntN(len("HTTP/1.1 201 Created\r\nContent-Type:")), cutRequest: -1}
	}),
	lostReply("lost/stalled", "the reply never comes, until the client gives up", func(*run) fault { return fault{cutReply: 0, cutRequest: -1, stall: true} }),
	leftAlone("lost/client-gone", "closes its connection", false),
	leftAlone("lost/reset", "resets its connection", true),
	{
		ID: "lost/request-cut", Level: Must, Title: "A request that broke off does not use its key up",
		Sends:   "Half of a request, and then all of it under the same key.",
		Expects: "One execution, of the whole request, and its result.",
		Clause:  "N18: draft section 2.6.",
		Costs:   "The key is bound to half a body: the honest retry is refused for good, and a payment cannot be made.",
		Fix:     "Read the whole body before the key is claimed.",
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			if len(c.body) < 2 {
				return skip("the request has no body that could be cut")
			}
			var last Exchange
			seen := s.watch(ctx, func() []Exchange {
				f := fault{cutReply: -1, cutRequest: len(c.body) / 2}
				heard := s.through(ctx, f, c)
				last = s.settled(ctx, c)
				return []Exchange{heard, last}
			})
			if !last.succeeded() {
				return broken(s.run.strength(), "after half a request the whole one got %s", last.result())
			}
			return seen.once("one execution in all, and the whole request got its result")
		},
	},
}

// lostReply is the case of one way to lose a reply.
func lostReply(id, what string, lose func(*run) fault) Case {
	return Case{
		ID: id, Level: Must, Title: "One execution when " + what,
		Sends:   "A request through a relay of the checker's, where " + what + ", and the same again until it has its result.",
		Expects: "One execution. The relay hears the reply that its client does not get, and it is held against the later one.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "This is what the key is for. A reply that is lost and an operation that is done twice is a customer who pays twice.",
		Fix:     lostFix,
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			var heard, last Exchange
			seen := s.watch(ctx, func() []Exchange {
				heard = s.through(ctx, lose(s.run), c)
				last = s.settled(ctx, c)
				return []Exchange{heard, last}
			})
			switch {
			case !last.succeeded() && !s.run.refusesRepeats(last):
				return broken(s.run.strength(), "after a lost reply the request got %s", last.result())
			case seen.evidence != Counted && !heard.succeeded():
				return inconclusive("the relay heard no success that the later reply could be held against")
			}
			if !heard.succeeded() {
				return seen.once("one execution in all, though nobody heard a success of the first request")
			}
			return seen.once("the reply was lost, and its repetition comes from the same execution")
		},
	}
}

// leftAlone is the case of a client that does not wait for its reply. What became
// of its request no reply can tell.
func leftAlone(id, what string, reset bool) Case {
	return Case{
		ID: id, Level: Must, Title: "One execution when the client " + what + " early",
		Sends:   "A request whose client " + what + " as soon as it is sent, and the same again until it has its result.",
		Expects: "One execution. That can be told only when effects are counted.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "The server stops half-way because nobody listens: charged and not noted, and charged again.",
		Fix:     lostFix,
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			var last Exchange
			seen := s.watch(ctx, func() []Exchange {
				s.sendAndLeave(ctx, c, reset)
				wait(ctx, leavePause)
				last = s.settled(ctx, c)
				return []Exchange{last}
			})
			switch {
			case !last.succeeded() && !(s.run.refusesRepeats(last) && seen.executions == 1):
				return broken(s.run.strength(), "after its client had left the request got %s", last.result())
			case seen.evidence != Counted:
				return inconclusive("what became of the request that nobody waited for can only be counted")
			}
			return seen.once("one execution in all, though the first client had left")
		},
	}
}

// leavePause is how long after its client has left a request is sent again: the
// first is at work by then, and not overtaken on its way.
const leavePause = 10 * time.Millisecond

const (
	// lostPatience is how long the client behind a relay waits for its reply.
	lostPatience = 2 * time.Second
	// heldBack is how long a reply that is there is held back from it.
	heldBack = 50 * time.Millisecond
)

// through sends a call through a relay with a fault, and returns what the relay
// heard. The history shows what the client got.
func (s *session) through(ctx context.Context, f fault, c call) (heard Exchange) {
	target, err := url.Parse(c.url)
	if err != nil {
		return Exchange{Err: err.Error()}
	}
	r := &relay{dial: throughTLS(target, s.run.dial), fault: f, begun: make(chan struct{})}
	sent := c.set("Host", target.Host)
	sent.url, sent.lastOfConn = plainURL(target), !f.stall // the relay hears where the reply ends
	patience, giveUp := context.WithTimeout(ctx, lostPatience)
	defer giveUp()
	if f.stall {
		go func() {
			select {
			case <-r.begun:
				wait(patience, heldBack)
				giveUp()
			case <-patience.Done():
			}
		}()
	}
	got := s.exchange(patience, newClient(s.run.newTransport(r.DialContext)), sent)
	giveUp()
	ending, cancel := context.WithTimeout(ctx, s.run.cfg.RequestTimeout)
	defer cancel()
	r.wait(ending)
	got.URL, got.Note = c.url, f.String()
	s.note(got)
	heard = r.reply(c.method)
	heard.redirect = s.run.redirect
	return heard
}

// sendAndLeave ends the connection of a request as soon as it is written, in
// good order or with a reset.
func (s *session) sendAndLeave(ctx context.Context, c call, reset bool) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	t := s.run.newTransport(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := s.run.dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			err = tcp.SetLinger(0)
		}
		return conn, err
	})
	defer t.CloseIdleConnections()
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { leave() }}
	x := s.exchange(httptrace.WithClientTrace(ctx, trace), newClient(t), c)
	x.Note = "the client left as soon as the request was written"
	s.note(x)
}
