package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// maxTimes is the most payments that one fault may be armed for.
const maxTimes = 1000

// demo returns what is under /demo/. No fault ever meets it, and no other
// site's page may change anything.
func (f *Front) demo() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo/faults", f.showFaults)
	mux.HandleFunc("POST /demo/faults", f.armFault)
	mux.HandleFunc("DELETE /demo/faults", f.clearFault)
	mux.HandleFunc("GET /demo/ledger", f.showLedger(payments.Anonymous))
	mux.HandleFunc("GET /demo/crowd/ledger", f.showLedger(payments.Crowd))
	mux.HandleFunc("GET /demo/orders/{order}", f.showOrder)
	mux.HandleFunc("GET /demo/log", f.showLog)
	mux.HandleFunc("GET /demo/changes", f.showChanges)
	mux.Handle("/demo/crowd", f.cfg.Crowd)
	mux.HandleFunc("GET /demo/bank", f.setting(f.bank, "/dedupe"))
	mux.HandleFunc("PUT /demo/bank", f.setting(f.bank, "/dedupe"))
	mux.HandleFunc("GET /demo/service", f.setting(f.service, "/lease"))
	mux.HandleFunc("PUT /demo/service", f.setting(f.service, "/lease"))
	mux.HandleFunc("/demo/", payments.NotFound)
	return http.NewCrossOriginProtection().Handler(mux)
}

// describedFault is a fault as GET /demo/faults lists it.
type describedFault struct {
	Fault payments.Fault `json:"fault"`
	What  string         `json:"what"`
}

func (f *Front) showFaults(w http.ResponseWriter, _ *http.Request) {
	all := make([]describedFault, 0, len(payments.Faults()))
	for _, fault := range payments.Faults() {
		all = append(all, describedFault{fault, fault.What()})
	}
	payments.WriteJSON(w, http.StatusOK, map[string]any{"armed": f.faults.state(), "faults": all})
}

// armFault switches a fault on for the next payments: {"fault":NAME,"times":N},
// N being 1 if it is left out. Zero times switches it off.
func (f *Front) armFault(w http.ResponseWriter, r *http.Request) {
	a, problem := readFault(w, r)
	if problem != nil {
		problem.Write(w)
		return
	}
	f.faults.arm(a)
	f.cfg.Log.bell.ring()
	payments.WriteJSON(w, http.StatusOK, a)
}

func (f *Front) clearFault(w http.ResponseWriter, _ *http.Request) {
	f.faults.arm(armed{})
	f.cfg.Log.bell.ring()
	payments.WriteJSON(w, http.StatusOK, armed{})
}

func readFault(w http.ResponseWriter, r *http.Request) (armed, *payments.Problem) {
	refuse := func(field, detail string) (armed, *payments.Problem) {
		p := payments.NewProblem(http.StatusBadRequest, "fault-invalid", detail)
		p.Field = field
		return armed{}, p
	}
	if p := payments.CheckJSON(r.Header.Get("Content-Type")); p != nil {
		return armed{}, p
	}
	body, problem := payments.ReadBody(w, r)
	if problem != nil {
		return armed{}, problem
	}
	var in struct {
		Fault *string `json:"fault"`
		Times *int    `json:"times"`
	}
	if err := jsonv2.Unmarshal(body, &in, jsonv2.RejectUnknownMembers(true)); err != nil {
		return refuse("", `the body must be {"fault":NAME,"times":N}: `+err.Error())
	}
	if in.Fault == nil {
		return refuse("fault", "fault is missing; one of "+payments.FaultNames())
	}
	fault, ok := payments.ParseFault(*in.Fault)
	if !ok {
		return refuse("fault", fmt.Sprintf("fault is %q; it must be one of %s", *in.Fault, payments.FaultNames()))
	}
	times := 1
	if in.Times != nil {
		times = *in.Times
	}
	switch {
	case times < 0 || times > maxTimes:
		return refuse("times", fmt.Sprintf("times is %d; it must be from 0 to %d", times, maxTimes))
	case times == 0:
		return armed{}, nil
	}
	return armed{Fault: fault, Times: times}, nil
}

// showLedger adds up what the three processes know of the accounts in which that
// customer's money is, who is one of all or the crowd.
func (f *Front) showLedger(customer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ledger, err := f.ledger(r.Context(), customer)
		f.showMoney(w, r, ledger, err)
	}
}

// showOrder says what the bank has taken for one order, whichever doors it came to.
func (f *Front) showOrder(w http.ResponseWriter, r *http.Request) {
	bill, err := f.bill(r.Context(), r.PathValue("order"))
	f.showMoney(w, r, bill, err)
}

func (f *Front) showMoney(w http.ResponseWriter, r *http.Request, money any, err error) {
	switch {
	case r.Context().Err() != nil:
		return // nobody waits for it any more
	case err != nil:
		f.cfg.Logger.ErrorContext(r.Context(), "the ledger cannot be read", "error", err)
		w.Header().Set("Retry-After", "1")
		payments.NewProblem(http.StatusServiceUnavailable, "service-unavailable", "the ledger cannot be read: "+err.Error()).Write(w)
		return
	}
	payments.WriteJSON(w, http.StatusOK, money)
}

// bill is what the bank has taken for one order.
type bill struct {
	Charges int64 `json:"charges"`
	Taken   int64 `json:"taken"` // in minor units
}

func (f *Front) bill(ctx context.Context, order string) (sum bill, err error) {
	numbers, err := f.book.numbers(ctx, payments.Anonymous, order)
	if err != nil {
		return bill{}, err
	}
	for _, number := range numbers {
		accounts, err := f.bank.totals(ctx, "?order="+number)
		if err != nil {
			return bill{}, err
		}
		for _, a := range accounts {
			sum.Charges += a.Charges
			sum.Taken += a.Taken
		}
	}
	return sum, nil
}

func (f *Front) ledger(ctx context.Context, customer string) (payments.Ledger, error) {
	stored, err := f.service.totals(ctx, "")
	if err != nil {
		return nil, err
	}
	taken, err := f.bank.totals(ctx, "")
	if err != nil {
		return nil, err
	}
	// The orders come last: each was noted before it could be charged, so none
	// that was charged is missing here.
	orders, err := f.book.counts(ctx)
	if err != nil {
		return nil, err
	}
	ledger := payments.Ledger{}
	for _, door := range payments.Doors() {
		account := door.AccountOf(customer)
		ledger[door] = payments.Account{
			Orders:   orders[account].Orders,
			Payments: stored[account].Payments,
			Charges:  taken[account].Charges,
			Charged:  taken[account].Charged,
			Taken:    taken[account].Taken,
		}
	}
	return ledger, nil
}

// errTotals is an answer without totals: the process is up and will not do
// better.
var errTotals = errors.New("GET /totals was answered")

// askAgainAfter is waited before a process is asked again.
const askAgainAfter = 10 * time.Millisecond

// totals asks a process for its own part of the ledger, again and again for as
// long as it may take to start: one that has just been killed may still take a
// connection, and asking changes nothing.
func (b backend) totals(ctx context.Context, query string) (payments.Totals, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		totals, err := b.askTotals(ctx, query)
		if err == nil || errors.As(err, new(dialError)) || errors.Is(err, errTotals) {
			return totals, err
		}
		if payments.Pause(ctx, askAgainAfter); ctx.Err() != nil {
			return nil, err
		}
	}
}

func (b backend) askTotals(ctx context.Context, query string) (payments.Totals, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://process/totals"+query, nil)
	if err != nil {
		return nil, err
	}
	resp, err := b.proxy.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w with %s", errTotals, resp.Status)
	}
	var totals payments.Totals
	return totals, json.NewDecoder(resp.Body).Decode(&totals)
}

func (f *Front) showLog(w http.ResponseWriter, _ *http.Request) {
	payments.WriteJSON(w, http.StatusOK, f.cfg.Log.Entries())
}

// setting passes what is asked under /demo/ on to the process that it is a
// setting of: whether the bank looks at keys, and how long a claim of the
// service holds.
func (f *Front) setting(b backend, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		payments.StripInternal(r.Header)
		r.URL.Path = path
		b.pass(w, r, &Entry{})
		if r.Method != http.MethodGet {
			f.cfg.Log.Changed()
		}
	}
}
