package shop

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// shownRequests is how many of the recent requests the page shows.
const shownRequests = 10

// open shows the page with the orders that are open, or new ones.
func (s *shop) open(w http.ResponseWriter, r *http.Request) {
	tickets := savedTickets(r)
	saveTickets(w, tickets)
	s.show(w, r, form{Fault: faults[0], Times: 1, Tickets: tickets}, nil)
}

// submit does what a button asked for, without JavaScript: the server is the
// client that sends the payment, and the page that comes back tells what it
// heard. There is no redirect after it: a reload posts the form again, with
// the same key, and that is the point.
func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	f, err := readForm(w, r)
	if errors.Is(err, errTooLarge) {
		s.refuse(w, http.StatusRequestEntityTooLarge, notSent(err))
		return
	}
	if err != nil {
		s.refuse(w, http.StatusBadRequest, notSent(err))
		return
	}
	tries := map[payments.Door][]try{}
	for _, t := range f.At {
		tk := f.Tickets[t.Door]
		if f.Do == doNew {
			f.Tickets[t.Door] = tk.renewed(t)
			continue
		}
		if f.fresh() && tk.State.settled() {
			tk = tk.renewed(t)
		}
		// A reader who leaves takes nothing back: the request is on its way.
		tries[t.Door] = s.sell(context.WithoutCancel(r.Context()), t, tk, f)
		f.Tickets[t.Door] = tk.after(t, tries[t.Door])
	}
	saveTickets(w, f.Tickets)
	s.show(w, r, f, tries)
}

// notSent says why a form led to no request.
func notSent(err error) string { return "Nothing was sent: " + err.Error() }

// sell arms the chosen fault if the order has not met one yet, and sends the
// order once, or twice at the same time. If the fault cannot be armed nothing
// is sent, since what came of it would teach the wrong thing.
func (s *shop) sell(ctx context.Context, t till, tk ticket, f form) []try {
	if f.Fault.Fault != payments.NoFault && s.met.first(tk.Order) {
		if err := s.front.arm(ctx, armed{f.Fault.Fault, f.Times}); err != nil {
			s.met.forget(tk.Order)
			return []try{{unsent: err}}
		}
	}
	sends := 1
	if f.Do == doTwice {
		sends = 2
	}
	tries := make([]try, sends)
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			got, err := s.front.pay(ctx, t.Door, tk.intent)
			tries[i] = try{answer: got, answered: err == nil}
		})
	}
	wg.Wait()
	return tries
}

// live shows only what changes by itself, for the script to put in place.
func (s *shop) live(w http.ResponseWriter, r *http.Request) {
	s.render(w, http.StatusOK, "live.html", s.watch(r.Context()))
}

// show renders the page.
func (s *shop) show(w http.ResponseWriter, r *http.Request, f form, tries map[payments.Door][]try) {
	v := pageView{
		Watch:    s.watch(r.Context()),
		Faults:   faults,
		Fault:    f.Fault.Name(),
		Times:    f.Times,
		Price:    money(amount),
		Payment:  payment,
		Patience: s.within,
	}
	for n := range maxTimes {
		v.Counts = append(v.Counts, n+1)
	}
	for i, t := range tills {
		v.Tills = append(v.Tills, tillView{
			till: t, Ticket: f.Tickets[t.Door], Tries: tries[t.Door],
			Account: v.Watch.Accounts[i], Price: v.Price,
		})
	}
	s.render(w, http.StatusOK, "page.html", v)
}

// watch asks the front for the money and the recent requests. What it cannot
// read it says instead.
func (s *shop) watch(ctx context.Context) watchView {
	var v watchView
	ledger, err := s.front.ledger(ctx)
	v.trouble("the ledger", err)
	for _, t := range tills {
		v.Accounts = append(v.Accounts, accountView{Door: t.Door, Account: ledger[t.Door], Known: err == nil})
	}
	v.Armed, err = s.front.armed(ctx)
	v.trouble("the faults", err)
	requests, err := s.front.log(ctx)
	v.trouble("the log", err)
	slices.Reverse(requests)
	for _, r := range requests[:min(len(requests), shownRequests)] {
		v.Requests = append(v.Requests, requestView{r})
	}
	return v
}
