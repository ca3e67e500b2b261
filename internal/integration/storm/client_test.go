package storm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// patience is how long a client waits for an answer. It is longer than
	// the fault "slow" takes.
	patience = 10 * time.Second
	// answerWithin is how soon an order is answered once nothing goes wrong
	// with it any more, however busy the machine is. How soon that is on this one
	// the figures say.
	answerWithin = time.Minute
)

// placed is an order with all that became of it.
type placed struct {
	order

	mu    sync.Mutex
	tries []try
}

// try is one request as its client saw it.
type try struct {
	client int // lastLook for the one at the end
	mishap mishap
	to     string // the process that it was sent to, by name
	life   *life  // the same; nil for one behind the supervisor's front
	sent   time.Time
	ended  time.Time
	whole  bool // the whole request was sent
	left   bool // the client hung up
	answer answer
	err    error // why there is no answer
}

// lastLook is the client that asks once more when all is quiet.
const lastLook = -1

// answer is what came back. Status is zero when nothing did.
type answer struct {
	status      int
	contentType string
	location    string
	body        string
	code        string // of a problem
	replayed    bool
	retryAfter  time.Duration
}

// final reports whether a client need not ask again.
func (a answer) final() bool {
	return a.status != 0 && a.status != http.StatusConflict && a.status < http.StatusInternalServerError
}

// same reports whether two answers say the same, byte for byte.
func (a answer) same(b answer) bool {
	return a.status == b.status && a.contentType == b.contentType && a.location == b.location && a.body == b.body
}

func (a answer) String() string {
	switch {
	case a.code != "":
		return fmt.Sprintf("%d %s", a.status, a.code)
	case a.replayed:
		return fmt.Sprintf("%d replayed", a.status)
	}
	return strconv.Itoa(a.status)
}

// note keeps t.
func (p *placed) note(t try) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries = append(p.tries, t)
}

// history returns the tries in the order in which they were sent.
func (p *placed) history() []try {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.tries), func(a, b try) int { return a.sent.Compare(b.sent) })
}

// troubled returns when something last went wrong with the order itself.
func (p *placed) troubled() time.Time {
	var last time.Time
	for _, t := range p.history() {
		if last.IsZero() {
			last = t.sent
		}
		if t.mishap.kind != nothing && t.ended.After(last) {
			last = t.ended
		}
	}
	return last
}

// place sends the order until it is answered, or has been unanswered for
// answerWithin although nothing went wrong.
func (w *world) place(p *placed, n int) {
	c := p.clients[n]
	rng := rand.New(rand.NewPCG(c.seed, 1))
	mishaps := c.mishaps
	for {
		var m mishap
		if len(mishaps) > 0 {
			m = mishaps[0]
		}
		to := w.choose(rng, m.kind)
		if c.door > 0 {
			to = w.doors[c.door-1]
		}
		t := w.send(p, m, to)
		t.client = n
		p.note(t)
		if t.whole || t.mishap.kind == bodyCut {
			mishaps = mishaps[min(1, len(mishaps)):]
		}
		if t.answer.final() || time.Since(w.calm(p)) > answerWithin {
			return
		}
		pause := 20*time.Millisecond + time.Duration(rng.Int64N(int64(130*time.Millisecond)))
		if c.polite && t.answer.retryAfter > 0 {
			pause = t.answer.retryAfter
		}
		<-time.After(pause)
	}
}

// look asks for the order's answer once more.
func (w *world) look(p *placed) {
	rng := rand.New(rand.NewPCG(w.seed, uint64(p.number)))
	for start := time.Now(); ; {
		t := w.send(p, mishap{}, w.choose(rng, nothing))
		t.client = lastLook
		p.note(t)
		if t.answer.final() || time.Since(start) > answerWithin {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// choose returns where to send a try.
func (w *world) choose(rng *rand.Rand, k kind) *kept {
	if k.needsFront() {
		return w.supervisor
	}
	return w.doors[rng.IntN(len(w.doors))]
}

// send makes one request on a connection of its own, so that nothing sends it
// again by itself (R20).
func (w *world) send(p *placed, m mishap, to *kept) (t try) {
	t = try{mishap: m, to: to.name, sent: time.Now()}
	defer func() { t.ended = time.Now() }()
	fault := m.kind.fault()
	if fault != nothing && to == w.supervisor {
		w.arm(fault)
		fault = nothing
	}
	conn, err := net.DialTimeout("tcp", to.where(), patience)
	if err != nil {
		t.err = err
		return t
	}
	defer conn.Close()
	if to != w.supervisor {
		t.life = to.current()
	}
	conn.SetDeadline(time.Now().Add(patience))
	text := w.request(&p.order, fault)
	if m.kind == bodyCut {
		text = text[:len(text)-len(p.body())/2]
	}
	if _, err = conn.Write(text); err != nil {
		t.err = err
		return t
	}
	if m.kind == bodyCut {
		t.err = errors.New("the client broke off")
		return t
	}
	t.whole = true
	switch {
	case m.kind == hungUp:
		conn.SetDeadline(time.Now().Add(m.after))
	case m.kind.isStrike():
		w.strikeAfter(m, to)
	}
	t.answer, t.err = receive(conn)
	t.left = errors.Is(t.err, os.ErrDeadlineExceeded)
	switch {
	case t.err == nil:
	case m.kind == killedBeforeCharge:
		w.struck(struckBeforeTheCharge)
	case m.kind == killedAfterCharge:
		w.struck(struckAfterTheCharge)
	}
	return t
}

// request returns the order as bytes on the wire.
func (w *world) request(o *order, fault kind) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: storm\r\nConnection: close\r\n", w.door)
	fmt.Fprintf(&b, "Idempotency-Key: %q\r\nX-Customer-Id: %s\r\n", o.key, o.customer)
	if fault != nothing {
		fmt.Fprintf(&b, "Semel-Demo-Fault: %s\r\n", fault)
	}
	body := o.body()
	fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

// receive reads an answer to its end.
func receive(conn net.Conn) (answer, error) {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{
		status:      resp.StatusCode,
		contentType: resp.Header.Get("Content-Type"),
		location:    resp.Header.Get("Location"),
		body:        string(body),
		replayed:    resp.Header.Get("Idempotent-Replayed") == "true",
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.retryAfter = time.Duration(seconds) * time.Second
	}
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &problem) == nil {
		a.code = problem.Code
	}
	return a, nil
}

// arm switches a fault on for the next payment that passes the front. A front
// that is down has nothing to pass.
func (w *world) arm(fault kind) {
	body := fmt.Sprintf(`{"fault":%q,"times":1}`, fault)
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post("http://"+w.supervisor.where()+"/demo/faults", "application/json", bytes.NewReader([]byte(body)))
	if err == nil {
		resp.Body.Close()
	}
}
