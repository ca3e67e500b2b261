package shop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

// lane is one of the four that take part.
type lane int

// The lanes, in their order on the page.
const (
	browser lane = iota
	service
	bank
	store
)

var laneNames = []string{"browser", "service", "bank", "store"}

// String is the lane's name.
func (l lane) String() string { return laneNames[l] }

// mark is how a hop is drawn.
type mark string

// The marks. Those from markKilled on stand on one lane, the others between
// two.
const (
	markAsk     mark = "ask"
	markAnswer  mark = "answer"
	markLost    mark = "lost"
	markKilled  mark = "killed"
	markUnknown mark = "unknown"
	markMoney   mark = "money"
	markNote    mark = "note"
)

// hop is one thing that happened to a request, with the log line that says so.
type hop struct {
	At       time.Time
	Mark     mark
	From, To lane
	Text     string
	Line     string
	// Store is the kind of store that the line is about, if it is about one and
	// says so.
	Store string
	// Final is true of an answer that leaves nothing to guess: the order is
	// paid. A refusal does not say what became of another send.
	Final bool
}

// sentence is the hop without the drawing.
func (h hop) sentence() string {
	switch h.Mark {
	case markAsk, markAnswer:
		return fmt.Sprintf("%s to %s: %s", h.From, h.To, h.Text)
	case markLost:
		return fmt.Sprintf("%s to %s, lost on the way: %s", h.From, h.To, h.Text)
	default:
		return fmt.Sprintf("%s: %s", h.From, h.Text)
	}
}

// line is what a log line may say. Whose line it is shows in what it says.
type line struct {
	Time     time.Time `json:"time"`
	Msg      string    `json:"msg"`
	Event    string    `json:"event"`
	Attempt  int64     `json:"attempt"`
	Status   int       `json:"status"`
	Outcome  string    `json:"outcome"`
	Replayed bool      `json:"replayed"`
	Key      string    `json:"key"`
	Answer   string    `json:"answer"`
	Amount   int64     `json:"amount"`
	Charge   string    `json:"charge_key"`
	Door     string    `json:"door"`
	Found    bool      `json:"found"`
	Which    string    `json:"which"`
	PID      int       `json:"pid"`
	How      string    `json:"how"`
	Store    string    `json:"store"`
	Mode     string    `json:"mode"`
	Joined   bool      `json:"joined"`

	// send numbers the request that the line is about, from 1, and raw is the
	// line itself.
	send int
	raw  string
}

// linesOf returns what was logged about the requests, in the order of its time.
func linesOf(requests []front.Entry) []line {
	var lines []line
	for i, r := range requests {
		for _, raw := range r.Lines {
			l := line{send: i + 1, raw: raw}
			if json.Unmarshal([]byte(raw), &l) == nil {
				lines = append(lines, l)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.Time.Compare(b.Time) })
	return lines
}

// storyOf returns what happened to the requests, in the order of its time.
// Lines that are no hop, such as summaries, are left out.
func storyOf(requests []front.Entry) []hop {
	var hops []hop
	for _, l := range deathsFirst(linesOf(requests)) {
		for _, h := range l.hops() {
			h.At, h.Line, h.Store = l.Time, l.raw, l.Store
			hops = append(hops, h)
		}
	}
	return hops
}

// deathsFirst puts the death of the service before the break of the connection
// that it caused. Whoever waits for a process hears of its death a moment later
// than its connections do.
func deathsFirst(lines []line) []line {
	for i, l := range lines {
		if !l.died() {
			continue
		}
		broke := slices.IndexFunc(lines[:i], func(b line) bool { return b.send == l.send && b.Msg == payments.LineBroke })
		if broke >= 0 {
			l.Time = lines[broke].Time // it was dead by then
			lines = slices.Insert(slices.Delete(lines, i, i+1), broke, l)
		}
	}
	return lines
}

// hops returns what the line stands for: nothing, one hop, or two where the
// loss of a message is also all that the browser hears of it.
func (l line) hops() []hop {
	switch l.Msg {
	case payments.LineRequestPassed:
		return one(markAsk, browser, service, l.order())
	case payments.LineRequestLost:
		return []hop{between(markLost, browser, service, l.order()), silence}
	case payments.LineReplyPassed:
		h := between(markAnswer, service, browser, l.reply())
		h.Final = l.Status >= 200 && l.Status <= 299
		return []hop{h}
	case payments.LineReplyLost:
		return []hop{between(markLost, service, browser, l.reply()), silence}
	case payments.LineBroke:
		return []hop{silence}
	case payments.LineClientGone:
		return one(markUnknown, browser, browser, "gives up waiting: I do not know")
	case payments.LineEnded:
		return []hop{l.death()}
	case payments.LineSemel:
		return l.ofSemel()
	default:
		return l.ofBusiness()
	}
}

// silence is what the browser knows when nothing comes back.
var silence = on(markUnknown, browser, "no answer: I do not know")

func on(m mark, at lane, text string) hop { return hop{Mark: m, From: at, To: at, Text: text} }

func between(m mark, from, to lane, text string) hop {
	return hop{Mark: m, From: from, To: to, Text: text}
}

func one(m mark, from, to lane, text string) []hop { return []hop{between(m, from, to, text)} }

// order is a request as the diagram calls it.
func (l line) order() string {
	if l.Key == "" {
		return fmt.Sprintf("send %d, no key", l.send)
	}
	return fmt.Sprintf("send %d, key %s", l.send, payments.Short(l.Key))
}

// reply is an answer as the diagram calls it.
func (l line) reply() string {
	text := fmt.Sprintf("%d %s", l.Status, strings.ToLower(http.StatusText(l.Status)))
	switch {
	case l.Replayed:
		text += ", replayed"
	case l.Outcome != "" && l.Outcome != "executed":
		text = fmt.Sprintf("%d %s", l.Status, l.Outcome)
	}
	return text
}

func (l line) death() hop {
	at := service
	if l.Which == "bank" {
		at = bank
	}
	if l.How == payments.HowKilled {
		return on(markKilled, at, fmt.Sprintf("killed, process %d", l.PID))
	}
	return on(markKilled, at, fmt.Sprintf("process %d ended: %s", l.PID, l.How))
}

// ofSemel is what Semel's store has said.
func (l line) ofSemel() []hop {
	switch l.Event {
	case semel.EventClaimed.String(), semel.EventReclaimed.String():
		return one(markAsk, service, store, "claims the key")
	case semel.EventTakeover.String():
		return one(markAsk, service, store, fmt.Sprintf("takes the key over, attempt %d", l.Attempt))
	case semel.EventInProgress.String():
		return one(markAnswer, store, service, fmt.Sprintf("held by attempt %d", l.Attempt))
	case semel.EventReplayed.String():
		return one(markAnswer, store, service, "done: the saved answer")
	case semel.EventKeyReused.String():
		return one(markAnswer, store, service, "key of another request")
	case semel.EventDone.String():
		if l.Mode == semel.Leased.String() {
			return one(markAsk, service, store, "saves the answer")
		}
		return one(markAsk, service, store, "commits payment and answer")
	case semel.EventReleased.String():
		return one(markAsk, service, store, "gives the key back")
	case semel.EventUnknown.String():
		return one(markAsk, service, store, "saves: end not known")
	case semel.EventLeaseLost.String():
		return one(markAnswer, store, service, "overtaken")
	default:
		return one(markAnswer, store, service, strings.ReplaceAll(l.Event, "_", " "))
	}
}

// ofBusiness is what the payment service and the bank do.
func (l line) ofBusiness() []hop {
	switch l.Msg {
	case payments.LineLooked:
		if l.Found {
			return one(markAnswer, store, service, "key found: its answer")
		}
		return one(markAnswer, store, service, "key not found")
	case payments.LineAsksBank:
		return one(markAsk, service, bank, "charge as "+payments.Short(l.Charge))
	case payments.LineCharge:
		return []hop{l.charge()}
	case payments.LineBankAnswered:
		return one(markAnswer, bank, service, fmt.Sprintf("%d %s", l.Status, strings.ToLower(http.StatusText(l.Status))))
	case payments.LineBankFailed:
		return []hop{on(markNote, service, "no usable answer")}
	case payments.LinePaid:
		switch {
		case l.Joined:
			return one(markAsk, service, store, "writes the payment")
		case l.Found:
			return one(markAnswer, store, service, "the payment is there")
		}
		return one(markAsk, service, store, "commits the payment")
	case payments.LineNotSaved:
		return []hop{on(markNote, service, payments.LineNotSaved)}
	case payments.LineSavedKey:
		return one(markAsk, service, store, "saves key and answer")
	default:
		return nil
	}
}

// charge is the bank's part. Only taken moves money.
func (l line) charge() hop {
	switch l.Answer {
	case payments.ChargeTaken:
		return on(markMoney, bank, "takes "+payments.Money(l.Amount))
	case payments.ChargeKnown:
		return on(markNote, bank, "knows it: no charge")
	default:
		return on(markNote, bank, l.Answer+": no charge")
	}
}
