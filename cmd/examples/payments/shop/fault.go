package shop

import (
	"slices"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// firstFault is chosen where nothing else is: the one that shows most.
const firstFault = payments.KilledAfterCharge

// maxTimes bounds how many sends of an order may meet a fault.
const maxTimes = 3

// fault is one thing that can go wrong, and the truth about networks that it
// stands for.
type fault struct {
	payments.Fault
	Title string
	Truth string
}

// Name is the fault in the form and in a request's header.
func (f fault) Name() string { return payments.FaultName(f.Fault) }

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
