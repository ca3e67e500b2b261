package shop

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// formLimit bounds a posted form, in bytes.
const formLimit = 16 << 10

// What a button may ask for.
const (
	doPay   = "pay"
	doTwice = "twice"
	doNew   = "new"
	// doYes and doNo are guesses, doStep asks for the next hop.
	doYes  = "yes"
	doNo   = "no"
	doStep = "step"
	// doRun lets the crowd shop.
	doRun = "run"
)

// atTills are what a button may ask for at a till.
var atTills = []string{doPay, doTwice, doNew, doYes, doNo, doStep}

// maxSent bounds the count of sends that a form may claim.
const maxSent = 1_000_000

// form is what the page posts: what to do, at which tills, under which choices,
// and the orders as the page holds them.
type form struct {
	Do string
	// At is where, one till or all; none for doRun.
	At []till
	choices
	Tickets map[payments.Door]ticket
}

// fresh reports whether the button asks for a new order at a till whose order
// is settled: all do but a till's own "send again".
func (f form) fresh() bool { return f.Do == doTwice || len(f.At) > 1 }

// errTooLarge is a form over formLimit.
var errTooLarge = fmt.Errorf("the form is over %d bytes", formLimit)

// readForm reads and checks the posted form. An error names the field and what
// it may hold; nothing has been sent then.
func readForm(w http.ResponseWriter, r *http.Request) (form, error) {
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	if err := r.ParseForm(); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return form{}, errTooLarge
		}
		return form{}, fmt.Errorf("the form cannot be read: %w", err)
	}
	f := form{Tickets: map[payments.Door]ticket{}}
	var err error
	if f.Do, f.At, err = readDo(r.PostForm.Get("do")); err != nil {
		return form{}, err
	}
	if f.choices, err = readChoices(r.PostForm); err != nil {
		return form{}, err
	}
	// What only the crowd goes by keeps nothing else from being done.
	if err = f.readCrowd(r.PostForm); err != nil && f.Do == doRun {
		return form{}, err
	}
	for _, t := range tills {
		if f.Tickets[t.Door], err = readTicket(r, t); err != nil {
			return form{}, err
		}
	}
	return f, nil
}

// readDo reads a button's value: what to do and at which till, as "pay keyed".
func readDo(value string) (string, []till, error) {
	do, at, _ := strings.Cut(value, " ")
	if value == doRun {
		return value, nil, nil
	}
	if !slices.Contains(atTills, do) {
		return "", nil, fmt.Errorf("do is %q, want one of %s, and a till, or %s", value, strings.Join(atTills, ", "), doRun)
	}
	if at == "all" {
		return do, tills, nil
	}
	i := slices.IndexFunc(tills, func(t till) bool { return string(t.Door) == at })
	if i < 0 {
		return "", nil, fmt.Errorf("do is %q, want the till keyless, naive, keyed or all after %s", value, do)
	}
	return do, tills[i : i+1], nil
}

// readFault reads the choice of a fault.
func readFault(name, times string) (fault, int, error) {
	f, ok := faultNamed(name)
	if !ok {
		return fault{}, 0, fmt.Errorf("fault is %q, which this shop does not know", name)
	}
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 || n > maxTimes {
		return fault{}, 0, fmt.Errorf("times is %q, want a number from 1 to %d", times, maxTimes)
	}
	return f, n, nil
}

// readTicket reads the order that the form holds for t, and the one after it.
func readTicket(r *http.Request, t till) (ticket, error) {
	var tk ticket
	var err error
	if tk.intent, err = readIntent(r, t, string(t.Door)); err != nil {
		return ticket{}, err
	}
	if tk.Next, err = readIntent(r, t, string(t.Door)+"-next"); err != nil {
		return ticket{}, err
	}
	value := r.PostForm.Get(string(t.Door) + "-sent")
	tk.Sent, err = strconv.Atoi(value)
	if err != nil || tk.Sent < 0 || tk.Sent > maxSent {
		return ticket{}, fmt.Errorf("%s-sent is %q, want how often the order was sent", t.Door, value)
	}
	tk.State = state(r.PostForm.Get(string(t.Door) + "-state"))
	known := func(s saying) bool { return s.State == tk.State }
	if !slices.ContainsFunc(t.sayings(), known) {
		return ticket{}, fmt.Errorf("%s-state is %q, want a state of an order", t.Door, tk.State)
	}
	tk.Heard = r.PostForm[string(t.Door)+"-heard"]
	return tk, nil
}

// readIntent reads an order number and, for a till with one, its key from the
// fields that begin with prefix.
func readIntent(r *http.Request, t till, prefix string) (intent, error) {
	in := intent{Order: r.PostForm.Get(prefix + "-order")}
	if !orderShape.MatchString(in.Order) {
		return intent{}, fmt.Errorf("%s-order is %q, want the order number that this page made", prefix, in.Order)
	}
	if !t.Keyed {
		return in, nil
	}
	in.Key = r.PostForm.Get(prefix + "-key")
	if !keyShape.MatchString(in.Key) {
		return intent{}, fmt.Errorf("%s-key is %q, want the key that this page made", prefix, in.Key)
	}
	return in, nil
}
