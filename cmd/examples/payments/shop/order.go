package shop

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// cookieName holds the open orders, as a shop's basket is held, so that a page
// without JavaScript that is opened again before the answer came still has the
// same order and the same key.
const cookieName = "shop_orders"

// Lengths of the random part of an order number and of a key, in characters.
const (
	orderLength = 10
	keyLength   = 26
)

// orderShape and keyShape are what the page itself makes. Anything else in a
// form or a cookie did not come from it.
var (
	orderShape = regexp.MustCompile(fmt.Sprintf(`^o_[a-z0-9]{%d}$`, orderLength))
	keyShape   = regexp.MustCompile(fmt.Sprintf(`^k_[a-z0-9]{%d}$`, keyLength))
)

// intent is one order as a client means it: however often it is sent, it stays
// the same.
type intent struct {
	Order string
	// Key is empty at the till without one.
	Key string
}

// newIntent opens an order at t.
func newIntent(t till) intent {
	in := intent{Order: "o_" + randomText(orderLength)}
	if t.Keyed {
		in.Key = "k_" + randomText(keyLength)
	}
	return in
}

// randomText returns n characters of five random bits each.
func randomText(n int) string { return strings.ToLower(rand.Text()[:n]) }

// ticket is a till's present order, as the form carries it.
type ticket struct {
	intent
	// Next is the order after this one. It is made with the page and not when
	// a button is pressed, so that a form posted again names the same order
	// again.
	Next intent
	// Sent counts the requests made for the order so far.
	Sent int
	// State is what is known about the order.
	State state
	// Heard says in a line each what came of the latest sends.
	Heard []string
}

// newTicket returns in as an order that has not been sent.
func newTicket(t till, in intent) ticket {
	return ticket{intent: in, Next: newIntent(t), State: stateOpen}
}

// renewed returns the ticket of the order after tk.
func (tk ticket) renewed(t till) ticket { return newTicket(t, tk.Next) }

// savedTickets reads the open orders of the cookie, and opens new ones where
// it holds none that this page has made.
func savedTickets(r *http.Request) map[payments.Door]ticket {
	intents := make([]intent, len(tills))
	for i, t := range tills {
		intents[i] = newIntent(t)
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if saved, ok := parseIntents(c.Value); ok {
			intents = saved
		}
	}
	out := map[payments.Door]ticket{}
	for i, t := range tills {
		out[t.Door] = newTicket(t, intents[i])
	}
	return out
}

// parseIntents reads the cookie: for each till an order and, where there is
// one, its key.
func parseIntents(value string) ([]intent, bool) {
	fields := strings.Split(value, ".")
	var out []intent
	for _, t := range tills {
		n := 1
		if t.Keyed {
			n = 2
		}
		if len(fields) < n || !orderShape.MatchString(fields[0]) || t.Keyed && !keyShape.MatchString(fields[1]) {
			return nil, false
		}
		in := intent{Order: fields[0]}
		if t.Keyed {
			in.Key = fields[1]
		}
		out = append(out, in)
		fields = fields[n:]
	}
	return out, len(fields) == 0
}

// saveTickets keeps each order that is not settled, and the next one in place
// of each that is.
func saveTickets(w http.ResponseWriter, tickets map[payments.Door]ticket) {
	var fields []string
	for _, t := range tills {
		tk := tickets[t.Door]
		in := tk.intent
		if tk.State.settled() {
			in = tk.Next
		}
		fields = append(fields, in.Order)
		if t.Keyed {
			fields = append(fields, in.Key)
		}
	}
	http.SetCookie(w, &http.Cookie{
		Name:     cookieName,
		Value:    strings.Join(fields, "."),
		Path:     "/",
		SameSite: http.SameSiteStrictMode,
	})
}
