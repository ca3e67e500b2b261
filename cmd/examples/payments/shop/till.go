package shop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// till is one of the two ways to pay that the page sets side by side.
type till struct {
	// Door is where its requests go, and the till's name in form and ledger.
	payments.Door
	// Keyed says whether its requests carry a key.
	Keyed bool
	// Title and About are what the page calls it and says of it.
	Title string
	About string
}

// keyed and keyless are the two tills; nothing else tells them apart.
var (
	keyed = till{
		Door: payments.Keyed, Keyed: true,
		Title: "With a key",
		About: "Every send of an order carries the same Idempotency-Key.",
	}
	keyless = till{
		Door:  payments.Keyless,
		Title: "Without a key",
		About: "The same code behind it, and nothing that names the order.",
	}
)

// tills is their order on the page.
var tills = []till{keyed, keyless}

// state is what the client knows about an order.
type state string

// The states of an order. Only the last three are the end of it.
const (
	stateOpen      state = "open"
	stateSending   state = "sending"
	stateUnknown   state = "unknown"
	stateAgain     state = "again"
	statePaid      state = "paid"
	statePaidAgain state = "paid-again"
	stateRefused   state = "refused"
)

// ranks orders what an order's sends have told, from nothing to the best news.
var ranks = []state{stateOpen, stateUnknown, stateAgain, stateRefused, statePaid, statePaidAgain}

// settled reports whether the client has its answer and needs no other.
func (s state) settled() bool {
	return s == statePaid || s == statePaidAgain || s == stateRefused
}

// saying is one sentence of the till, shown while the order is in State.
type saying struct {
	State state
	Text  string
}

// sayings returns everything t may have to say. The page holds it all, so that
// the server and the script show the same words.
func (t till) sayings() []saying {
	out := []saying{
		{stateOpen, "Ready to send."},
		{stateSending, "Sent. Waiting for the answer."},
		{stateAgain, "An answer, but no result. The order is still open."},
		{stateRefused, "Refused. The order is closed."},
	}
	if t.Keyed {
		return append(
			out,
			saying{stateUnknown, "No answer. Was it charged? You cannot know. With the same key you may ask again safely."},
			saying{statePaid, "Paid. However often it is sent, it is the same payment."},
		)
	}
	return append(
		out,
		saying{stateUnknown, "No answer. Was it charged? You cannot know. Send again and you may pay twice; do not, and you may not have paid."},
		saying{statePaid, "Paid."},
		saying{statePaidAgain, "Paid, at least once. Nothing in the answer says whether another send was charged too."},
	)
}

// try is one request and what came of it: an answer, or none.
type try struct {
	answer   answer
	answered bool
	// unsent says why there was no request at all, if there was none.
	unsent error
}

// state is what one try alone tells the client. A server's error, a conflict
// and a plea to come later leave the order open; see the table of kept replies
// in the HTTP contract.
func (t try) state() state {
	switch s := t.answer.Status; {
	case t.unsent != nil:
		return stateOpen
	case !t.answered:
		return stateUnknown
	case s >= 200 && s <= 299:
		return statePaid
	case s >= 500, s == http.StatusRequestTimeout, s == http.StatusConflict,
		s == http.StatusTooEarly, s == http.StatusTooManyRequests:
		return stateAgain
	default:
		return stateRefused
	}
}

// String says in a line what came of the try.
func (t try) String() string {
	if t.unsent != nil {
		return "not sent, for the fault could not be switched on: " + t.unsent.Error()
	}
	if !t.answered {
		return "no answer"
	}
	parts := []string{strings.TrimSpace(fmt.Sprintf("%d %s", t.answer.Status, http.StatusText(t.answer.Status)))}
	if t.answer.Outcome != "" {
		parts = append(parts, t.answer.Outcome)
	}
	var body struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	// A body that is not JSON has neither, and the status says enough.
	_ = json.Unmarshal(t.answer.Body, &body)
	if body.ID != "" {
		parts = append(parts, "payment "+body.ID)
	}
	if body.Title != "" {
		parts = append(parts, body.Title)
	}
	return strings.Join(parts, " · ")
}

// after returns tk as it is after tries. The best news that there ever was
// counts: what is paid stays paid, whatever a later send hears.
func (tk ticket) after(t till, tries []try) ticket {
	for _, tr := range tries {
		if tr.unsent == nil {
			tk.Sent++
		}
		if s := tr.state(); slices.Index(ranks, s) > slices.Index(ranks, tk.State) {
			tk.State = s
		}
	}
	if tk.State == statePaid && !t.Keyed && tk.Sent > 1 {
		tk.State = statePaidAgain
	}
	return tk
}
