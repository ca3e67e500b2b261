package check

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"time"
)

const lostFix = "Save the reply with the work in one transaction, and do not let the work end with the connection that asked for it."

var lostCases = []Case{
	lostReply("lost/reply", "the whole reply is lost", fault{cutReply: 0, cutRequest: -1}),
	lostReply("lost/reply-cut", "the reply is cut in its midst", fault{cutReply: cutSomewhere, cutRequest: -1}),
	lostReply("lost/reset", "the connection is reset before the reply", fault{cutReply: 0, cutRequest: -1, reset: true}),
	lostReply("lost/stalled", "the reply never comes, until the client gives up", fault{cutReply: 0, cutRequest: -1, stall: true}),
	{
		ID: "lost/client-gone", Level: Must, Title: "A client that leaves early finds one execution",
		Sends:   "A request whose connection is closed as soon as it is sent, and the same again until it has its result.",
		Expects: "One execution. That can be told only when effects are counted.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "The server stops half-way because nobody listens: charged and not noted, and charged again.",
		Fix:     lostFix,
		run: func(ctx context.Context, s *session) outcome {
			c := s.run.newCall()
			var last Exchange
			seen := s.watch(ctx, func() []Exchange {
				gone := s.sendAndLeave(ctx, c)
				last = s.settled(ctx, c)
				return []Exchange{gone, last}
			})
			switch {
			case !last.succeeded():
				return broken(s.run.strength(), "after its client had left the request got %s", last.result())
			case seen.evidence != Counted:
				return inconclusive("what became of the request that nobody waited for can only be counted")
			}
			return seen.once("one execution, whose client had left")
		},
	},
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
				f := fault{cutReply: -1, cutRequest: s.run.headLength(ctx, c) + len(c.body)/2}
				cut, heard := s.through(ctx, f, c)
				last = s.settled(ctx, c)
				return []Exchange{cut, heard, last}
			})
			if !last.succeeded() {
				return broken(s.run.strength(), "after half a request the whole one got %s", last.result())
			}
			return seen.once("half a request did nothing, the whole one was executed")
		},
	},
}

// cutSomewhere stands for a number of bytes that the seed chooses.
const cutSomewhere = 1

// lostReply is the case of one way to lose a reply.
func lostReply(id, what string, f fault) Case {
	return Case{
		ID: id, Level: Must, Title: "One execution when " + what,
		Sends:   "A request through a relay of the checker's, where " + what + ", and the same again until it has its result.",
		Expects: "One execution. The relay hears the reply that its client does not get, and it is held against the later one.",
		Clause:  "N19: draft section 2.6.",
		Costs:   "This is what the key is for. A reply that is lost and an operation that is done twice is a customer who pays twice.",
		Fix:     lostFix,
		run: func(ctx context.Context, s *session) outcome {
			f := f
			if f.cutReply == cutSomewhere {
				f.cutReply += s.run.random.IntN(len("HTTP/1.1 201 Created\r\nContent-Type:"))
			}
			c := s.run.newCall()
			var heard, last Exchange
			seen := s.watch(ctx, func() []Exchange {
				_, heard = s.through(ctx, f, c)
				last = s.settled(ctx, c)
				return []Exchange{heard, last}
			})
			switch {
			case !last.succeeded():
				return broken(s.run.strength(), "after a lost reply the request got %s", last.result())
			case seen.evidence != Counted && !heard.succeeded():
				return inconclusive("the relay heard no success that the later reply could be held against")
			}
			return seen.once("the reply was lost, and its repetition comes from the same execution")
		},
	}
}

// lostPatience is how long the client behind a stalled reply waits.
const lostPatience = 2 * time.Second

// through sends a call through a relay with a fault. It returns what the client
// got, which is what the history shows, and what the relay heard.
func (s *session) through(ctx context.Context, f fault, c call) (got, heard Exchange) {
	r, err := newRelay(ctx, c.url, f)
	if err != nil {
		got = Exchange{Err: err.Error()}
		return got, got
	}
	sent := c.set("Host", r.target.Host)
	sent.url = "http://" + r.listener.Addr().String() + r.target.RequestURI()
	sent.lastOfConn = true
	t := newTransport()
	defer t.CloseIdleConnections()
	patience, cancel := context.WithTimeout(ctx, lostPatience)
	defer cancel()
	got = s.exchange(patience, newClient(t), sent)
	cancel()
	r.close()
	got.URL, got.Note = c.url, "through a relay that loses what it is told to"
	s.note(got)
	heard, _ = r.reply(c.method)
	return got, heard
}

// headLength is about how long a request is without its body.
func (r *run) headLength(ctx context.Context, c call) int {
	req, err := r.request(ctx, c)
	if err != nil {
		return 0
	}
	var counted countingWriter
	req.Body, req.ContentLength = http.NoBody, 0
	req.Write(&counted) //nolint:errcheck // it only counts.
	return int(counted) + len("Content-Length: 0\r\nConnection: close\r\n")
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// sendAndLeave closes the connection of a request as soon as it is written.
func (s *session) sendAndLeave(ctx context.Context, c call) Exchange {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	t := newTransport()
	defer t.CloseIdleConnections()
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { leave() }}
	x := s.exchange(httptrace.WithClientTrace(ctx, trace), newClient(t), c)
	x.Note = "the client closed the connection as soon as the request was written"
	s.note(x)
	return x
}
