package shop

import (
	"slices"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// noFault is how the form says that nothing is to go wrong.
const noFault = "none"

// maxTimes bounds how many requests in a row may meet a fault.
const maxTimes = 3

// fault is one thing that can go wrong, and the truth about networks that it
// stands for.
type fault struct {
	payments.Fault
	Title string
	Truth string
}

// Name is the fault in the form.
func (f fault) Name() string {
	if f.Fault == payments.NoFault {
		return noFault
	}
	return string(f.Fault)
}

// faults is what the page offers, in its order.
var faults = []fault{
	{payments.NoFault, "Nothing", "The network is well and every server lives."},
	{payments.RequestLost, "Request lost", "It never arrived. No work was done."},
	{payments.ReplyLost, "Reply lost", "The work was done, and the answer went missing."},
	{payments.KilledBeforeCharge, "Killed before the charge", "The service dies half-way. No money has moved."},
	{payments.KilledAfterCharge, "Killed after the charge", "The service dies half-way. The money has moved."},
	{payments.Slow, "Slow", "The client gives up before the answer. The work goes on."},
	{payments.BankError, "Bank error", "The bank fails and takes nothing. The shop says so."},
}

// faultNamed returns the fault that the form calls name.
func faultNamed(name string) (fault, bool) {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.Name() == name })
	if i < 0 {
		return fault{}, false
	}
	return faults[i], true
}
