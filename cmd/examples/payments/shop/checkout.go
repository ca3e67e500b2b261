package shop

import (
	"net/http"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// checkoutView is what checkout.html shows.
type checkoutView struct {
	Faults  []fault
	Fault   fault
	Counts  []int
	Price   string
	Payment string
	// Order and Header are the names of the headers that carry the order and
	// the fault.
	Order, Header string
	Limits        limits
}

// checkout is the page that pays as a shop of one's own would: from the browser,
// through the module of package js. A page with an answer that may not be stored
// is not kept alive for the back button, so this one may be.
func (s *shop) checkout(w http.ResponseWriter, _ *http.Request) {
	page := newPageView(choices{}, s.within)
	chosen, _ := faultNamed(payments.FaultName(firstFault))
	w.Header().Set("Cache-Control", "no-cache")
	s.render(w, http.StatusOK, "checkout.html", checkoutView{
		Faults: page.Faults, Fault: chosen, Counts: page.Counts, Price: page.Price, Payment: page.Payment,
		Order: payments.HeaderOrder, Header: payments.HeaderFault, Limits: page.Limits,
	})
}

// receipt is where the checkout leads: a page to come back from.
func (s *shop) receipt(w http.ResponseWriter, _ *http.Request) {
	s.render(w, http.StatusOK, "receipt.html", nil)
}
