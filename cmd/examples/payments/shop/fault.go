package shop

// fault is one thing that can go wrong, and the truth about networks that it
// stands for.
type fault struct {
	// Name is the fault in POST /demo/faults; "none" arms nothing.
	Name  string
	Title string
	Truth string
}

// noFault is the choice of a healthy network.
const noFault = "none"

// maxTimes bounds how many requests in a row may meet a fault.
const maxTimes = 3

// faults is what the page offers, in its order.
var faults = []fault{
	{noFault, "Nothing", "The network is well, the server lives."},
	{"request-lost", "Request lost", "It never arrived. No work was done, and the client hears nothing."},
	{"reply-lost", "Reply lost", "The work was done and the answer went missing. The client hears nothing."},
	{"killed-before-charge", "Killed before the charge", "The server dies half-way, before the money moved. The client hears nothing."},
	{"killed-after-charge", "Killed after the charge", "The server dies half-way, after the money moved. The client hears nothing."},
	{"slow", "Slow", "The answer takes longer than the client waits. The work goes on without it."},
	{"bank-error", "Bank error", "The bank fails, and the shop says so. Did the charge go through before it failed?"},
}
