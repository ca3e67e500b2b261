package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// shownRequests is how many of the recent requests the page shows.
const shownRequests = 20

// open shows the page with the orders that are open, or new ones, and with the
// choices of the link that led here.
func (s *shop) open(w http.ResponseWriter, r *http.Request) {
	c, err := readChoices(r.URL.Query())
	if err == nil {
		err = c.readCrowd(r.URL.Query())
	}
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "The link cannot be used: "+err.Error())
		return
	}
	tickets := savedTickets(r)
	saveTickets(w, tickets)
	s.show(w, r, form{choices: c, Tickets: tickets})
}

// submit does what a button asked for, without JavaScript: the server is the
// client that sends the payment, and the page that comes back tells what it
// heard. There is no redirect after a payment: a reload posts the form again,
// with the same key, and that is the point.
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
	switch f.Do {
	case doRun:
		s.run(w, r, f)
		return
	case doYes, doNo:
		if err := s.guess(r.Context(), f); err != nil {
			s.refuse(w, http.StatusBadGateway, "The guess was not taken: "+err.Error())
			return
		}
	case doPay, doTwice:
		if err := s.demo.apply(r.Context(), f.settings); err != nil {
			s.refuse(w, http.StatusBadGateway, notSent(err))
			return
		}
	}
	for _, t := range f.At {
		switch f.Do {
		case doYes, doNo: // noted above
		case doStep:
			f.Shown[t.Door]++
		default:
			s.serve(r.Context(), t, f)
		}
	}
	saveTickets(w, f.Tickets)
	s.show(w, r, f)
}

// guess notes what was guessed, and how often each order has been charged by
// now: the guess is about that, whatever comes of the sends after it.
func (s *shop) guess(ctx context.Context, f form) error {
	log, err := s.demo.log(ctx)
	if err != nil {
		return err
	}
	for _, t := range f.At {
		order := f.Tickets[t.Door].Order
		s.guesses.make(t.Door, order, guess{Said: f.Do, Charged: charges(storyOf(requestsOf(log, t.Door, order)))})
	}
	return nil
}

// run lets the crowd shop. It ends with the page of the same choices, so that a
// reload does not do it again.
func (s *shop) run(w http.ResponseWriter, r *http.Request, f form) {
	err := s.demo.run(r.Context(), f.Crowd, f.settings)
	if refused, ok := errors.AsType[*client.RefusedError](err); ok && refused.Status == http.StatusConflict {
		s.refuse(w, refused.Status, "The run was not started: "+refused.Detail)
		return
	}
	if err != nil {
		s.refuse(w, http.StatusBadGateway, "The run was not started: "+err.Error())
		return
	}
	saveTickets(w, f.Tickets)
	http.Redirect(w, r, f.Link()+"#crowd", http.StatusSeeOther)
}

// serve deals with one till.
func (s *shop) serve(ctx context.Context, t till, f form) {
	tk := f.Tickets[t.Door]
	if f.Do == doNew {
		f.Tickets[t.Door] = tk.renewed(t)
		f.Shown[t.Door] = 1
		return
	}
	if f.fresh() && tk.State.settled() {
		tk = tk.renewed(t)
		f.Shown[t.Door] = 1
	}
	tk.Sent = s.sent(ctx, t, tk)
	// A reader who leaves takes nothing back: the request is on its way.
	tries := s.sell(context.WithoutCancel(ctx), t, tk, f)
	f.Tickets[t.Door] = tk.after(t, tries, f.NewKeys)
}

// notSent says why a form led to no request.
func notSent(err error) string { return "Nothing was sent: " + err.Error() }

// sell sends the order once, or twice at the same time. The first sends of an
// order meet the chosen fault, also where the page that posts the form does not
// know of them: one that is loaded again half-way, or whose answer is.
func (s *shop) sell(ctx context.Context, t till, tk ticket, f form) []try {
	sends := 1
	if f.Do == doTwice {
		sends = 2
	}
	tries := make([]try, sends)
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			in, body := f.nth(t, tk, i)
			met := payments.NoFault
			if tk.Sent+i < f.Times {
				met = f.Fault.Fault
			}
			got, err := s.demo.pay(ctx, t.Door, in, body, met)
			tries[i] = try{answer: got, answered: err == nil}
		})
	}
	wg.Wait()
	return tries
}

// sent is how often the order of tk has been sent: as far as the form knows, or
// the log.
func (s *shop) sent(ctx context.Context, t till, tk ticket) int {
	log, err := s.demo.log(ctx)
	if err != nil {
		return tk.Sent // as far as one can know
	}
	return max(tk.Sent, len(requestsOf(log, t.Door, tk.Order)))
}

// nth is what the i-th send of a press carries: the order's own key and price,
// unless the reader wants to see what comes of others.
func (f form) nth(t till, tk ticket, i int) (in intent, body string) {
	in, body = tk.intent, payment
	again := tk.Sent+i > 0
	if again && f.NewKeys && t.Keyed {
		in.Key = newIntent(t).Key
	}
	if again && f.OtherAmount {
		body = otherPayment
	}
	return in, body
}

// live shows only what changes by itself, for the script to put in place. Pages
// that ask for the same at the same time get the same rendering.
func (s *shop) live(w http.ResponseWriter, r *http.Request) {
	c, err := readChoices(r.URL.Query())
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	orders := map[payments.Door]string{}
	for _, t := range tills {
		orders[t.Door] = r.URL.Query().Get(string(t.Door) + "-order")
	}
	// The work is also that of others who wait for it: nobody's leaving ends it.
	ctx := context.WithoutCancel(r.Context())
	body, err := s.lives.get(c.view(orders), func() ([]byte, error) {
		return s.rendered("live.html", s.watch(ctx, c, orders))
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writePage(w, http.StatusOK, body)
}

// view names what live shows under these choices. Only who guesses or goes step
// by step is shown their own orders, and only the latter is shown less.
func (c choices) view(orders map[payments.Door]string) string {
	if !c.ownOrder() {
		orders = nil
	}
	shown := c.Shown
	if !c.Step {
		shown = nil
	}
	return fmt.Sprint(c.settings, orders, shown) // fmt prints maps in the order of their keys
}

// show renders the page.
func (s *shop) show(w http.ResponseWriter, r *http.Request, f form) {
	v := newPageView(f.choices, s.within)
	orders := map[payments.Door]string{}
	for door, tk := range f.Tickets {
		orders[door] = tk.Order
	}
	v.Watch = s.watch(r.Context(), f.choices, orders)
	v.Watch.Crowd.Link = f.Link()
	saved := f.choices
	saved.settings = saved.or(v.Watch.Now) // elsewhere "as it is" may be something else
	v.Saved = saved.Link()
	for i, t := range tills {
		v.Tills = append(v.Tills, tillView{
			till: t, Ticket: f.Tickets[t.Door], Shown: f.Shown[t.Door],
			Account: v.Watch.Accounts[i], Price: payments.Money(amount),
		})
	}
	s.render(w, http.StatusOK, "page.html", v)
}

// watch asks the front for the money and the recent requests. What it cannot
// read it says instead. orders are those of the page that is shown.
func (s *shop) watch(ctx context.Context, c choices, orders map[payments.Door]string) watchView {
	var v watchView
	ledger, err := s.demo.ledger(ctx)
	v.trouble("the ledger", err)
	known := err == nil
	v.Chosen = c.settings
	v.Now, err = s.demo.settings(ctx)
	v.trouble("the settings", err)
	report, err := s.demo.crowd(ctx)
	v.trouble("the crowd", err)
	v.Crowd = crowdView{Report: report}
	log, err := s.demo.log(ctx)
	v.trouble("the log", err)
	for _, t := range tills {
		v.Accounts = append(v.Accounts, accountView{
			Account: ledger[t.Door], Known: known, Story: s.story(t, log, c, orders[t.Door]),
		})
	}
	slices.Reverse(log)
	for _, r := range log[:min(len(log), shownRequests)] {
		shown := requestView{r}
		if orders[r.Door] == r.Order && v.asked(r.Door) {
			shown = shown.fromOutside()
		}
		v.Requests = append(v.Requests, shown)
	}
	return v
}
