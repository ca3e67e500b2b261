package shop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// till is one of the three ways to pay that the page sets side by side.
type till struct {
	// Door is where its requests go, and the till's name in form and ledger.
	payments.Door
	// Keyed says whether its requests carry a key, and Safe whether the door
	// behind makes one payment of all of them.
	Keyed bool
	Safe  bool
	// Title and About are what the page calls it and says of it.
	Title string
	About string
}

// The tills; nothing else tells them apart.
var (
	keyless = till{
		Door:  payments.Keyless,
		Title: "No key",
		About: "Nothing tells a repeat from a second order.",
	}
	naive = till{
		Door: payments.Naive, Keyed: true,
		Title: "Look first, save later",
		About: "The service looks the key up, works, and saves the key afterwards.",
	}
	keyed = till{
		Door: payments.Keyed, Keyed: true, Safe: true,
		Title: "Semel",
		About: "The key is claimed first. The answer is saved, and a repeat gets it.",
	}
)

// tills is their order on the page.
var tills = []till{keyless, naive, keyed}

// state is what the client knows about an order.
type state string

// The states of an order. Only the last three are the end of it.
const (
	stateOpen      state = "open"
	stateSending   state = "sending"
	stateUnknown   state = "unknown"
	stateAgain     state = "again"
	stateDoubt     state = "doubt"
	statePaid      state = "paid"
	statePaidAgain state = "paid-again"
	stateRefused   state = "refused"
)

// ranks orders what an order's sends have told, from nothing to the best news.
var ranks = []state{stateOpen, stateUnknown, stateAgain, stateDoubt, stateRefused, statePaid, statePaidAgain}

// settled reports whether the client has its answer and needs no other.
func (s state) settled() bool {
	return s == statePaid || s == statePaidAgain || s == stateRefused
}

// with is what two sends of one order tell: the best news counts, but a refusal
// says nothing of another send whose result is not known.
func (s state) with(other state) state {
	unclear := []state{stateUnknown, stateAgain, stateDoubt}
	if s == stateRefused && slices.Contains(unclear, other) || other == stateRefused && slices.Contains(unclear, s) {
		return stateDoubt
	}
	if slices.Index(ranks, other) > slices.Index(ranks, s) {
		return other
	}
	return s
}

// then is what is known of an order after other news. With several sends that
// may each have been charged, being paid is not the whole of it.
func (s state) then(news state, several bool) state {
	next := s.with(news)
	if next == statePaid && several {
		return statePaidAgain
	}
	return next
}

// saying is one sentence of the till, shown while the order is in State.
type saying struct {
	State state
	Text  string
}

// sayings returns everything t may have to say. The page holds it all, so that
// the server and the script show the same words.
func (t till) sayings() []saying {
	unknown := "No answer. Was it charged? You cannot know. Send again and you may pay twice; do not, and you may not have paid."
	paid := "Paid."
	switch {
	case t.Safe:
		unknown = "No answer. Was it charged? You cannot know. With the same key you may ask again safely."
		paid = "Paid. Sent again with this key, it gets the same answer."
	case t.Keyed:
		unknown = "No answer. Was it charged? You cannot know. Send the same key again and hope that it was saved in time."
	}
	return []saying{
		{stateOpen, "Ready to send."},
		{stateSending, "Sent. Waiting for the answer."},
		{stateAgain, "An answer, but no result. The order is still open."},
		{stateRefused, "Refused. The order is closed."},
		{stateDoubt, "A send was refused; whether another was charged is still not known. The order is open."},
		{stateUnknown, unknown},
		{statePaid, paid},
		{statePaidAgain, "Paid, at least once. Nothing in the answer says whether another send was charged too."},
	}
}

// try is one request and what came of it: an answer, or none.
type try struct {
	answer   client.Answer
	answered bool
}

// state is what one try alone tells the client. A server's error, a conflict
// and a plea to come later leave the order open; see the table of kept replies
// in the HTTP contract.
func (t try) state() state {
	switch s := t.answer.Status; {
	case !t.answered:
		return stateUnknown
	case s >= 200 && s <= 299:
		return statePaid
	case !payments.Settles(s):
		return stateAgain
	default:
		return stateRefused
	}
}

// String says in a line what came of the try.
func (t try) String() string {
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
		parts = append(parts, "payment "+payments.Short(body.ID))
	}
	if body.Title != "" && t.answer.Outcome == "" { // an outcome says as much
		parts = append(parts, body.Title)
	}
	return strings.Join(parts, " · ")
}

// after returns tk as it is after tries. The best news that there ever was
// counts: what is paid stays paid, whatever a later send hears. Only a door that
// is safe, and one key for all sends, make several sends one payment.
func (tk ticket) after(t till, tries []try, newKeys bool) ticket {
	tk.Sent += len(tries)
	several := tk.Sent > 1 && (!t.Safe || newKeys)
	for _, tr := range tries {
		tk.State = tk.State.then(tr.state(), several)
		tk.Heard = append(tk.Heard, tr.String())
	}
	tk.Heard = tk.Heard[max(0, len(tk.Heard)-maxTries):]
	return tk
}
