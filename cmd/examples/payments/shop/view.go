package shop

import (
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
)

// pageView is what page.html shows.
type pageView struct {
	Watch watchView
	Tills []tillView
	choices
	Faults []fault
	// Counts are the choices of Times, and Leases those of Lease.
	Counts []int
	Leases []string
	// Price and OtherPrice are what an order costs, and what a repeat asks for
	// that is to differ.
	Price      string
	OtherPrice string
	// Payment and OtherPayment are the bodies of the payment requests.
	Payment      string
	OtherPayment string
	Rules        rules
	Signs        []sign
	// Saved is the page's address with all choices in it.
	Saved  string
	Limits limits
}

// newPageView is the page without what has to be asked for.
func newPageView(c choices, patience time.Duration) pageView {
	v := pageView{
		choices: c, Faults: faults, Leases: c.offered(),
		Price: payments.Money(amount), OtherPrice: payments.Money(otherAmount),
		Payment: payment, OtherPayment: otherPayment,
		Rules: newRules(), Signs: signs, Limits: newLimits(patience),
	}
	for n := range maxTimes {
		v.Counts = append(v.Counts, n+1)
	}
	return v
}

// sign is one of the legend.
type sign struct {
	Mark    mark
	Meaning string
}

var signs = []sign{
	{markUnknown, "I do not know"},
	{markLost, "lost on the way"},
	{markKilled, "process killed"},
	{markMoney, "money taken"},
	{markNote, "no money moved"},
}

// watchView is what changes by itself.
type watchView struct {
	// Accounts are those of the tills, in the tills' order.
	Accounts []accountView
	// Now are the settings of the processes behind, and Chosen those that the
	// next payment or run sets.
	Now, Chosen settings
	Crowd       crowdView
	// Requests are the recent ones, newest first.
	Requests []requestView
	// Troubles say what could not be read, and why.
	Troubles []string
}

// asked reports whether the reader is to guess at a till.
func (v watchView) asked(door payments.Door) bool {
	return slices.ContainsFunc(v.Accounts, func(a accountView) bool { return a.Story.Door == door && a.Story.Asked })
}

// Set says how the processes behind are set.
func (v watchView) Set() string { return v.Now.String() }

// Next is what the next payment or run sets, or empty.
func (v watchView) Next() string {
	next := v.Chosen
	if next.Lease == v.Now.Lease {
		next.Lease = ""
	}
	if next.Bank == v.Now.Bank {
		next.Bank = ""
	}
	return next.String()
}

// String says what s sets.
func (s settings) String() string {
	var parts []string
	if s.Lease != "" {
		parts = append(parts, "a lease of "+s.Lease)
	}
	switch s.Bank {
	case remembers:
		parts = append(parts, "a bank that looks at its keys")
	case forgets:
		parts = append(parts, "a bank that ignores its keys")
	}
	return strings.Join(parts, ", ")
}

// trouble notes that what could not be read, if err says so.
func (v *watchView) trouble(what string, err error) {
	if err != nil {
		v.Troubles = append(v.Troubles, "Cannot read "+what+": "+err.Error())
	}
}

// tillView is one till with its order.
type tillView struct {
	till
	Ticket  ticket
	Shown   int
	Account accountView
	Price   string
}

// Sayings is everything the till may say.
func (v tillView) Sayings() []saying { return v.sayings() }

// accountView says in words what an account holds.
type accountView struct {
	payments.Account
	// Known is false if the ledger could not be read.
	Known bool
	// Story is what happened to the till's latest order.
	Story storyView
}

// Door is whose account it is.
func (v accountView) Door() payments.Door { return v.Story.Door }

// Sum is the money taken.
func (v accountView) Sum() string { return payments.Money(v.Taken) }

// For says what the money was taken for. The price stands there only while
// every charge was of it.
func (v accountView) For() string {
	text := "taken for " + counted(v.Orders, "order")
	if v.Orders > 0 && v.Taken == v.Charges*amount {
		text += " of " + payments.Money(amount)
		if v.Orders > 1 {
			text += " each"
		}
	}
	return text
}

// Verdict is "right", "over", "under" or "none": whether the bank took money
// once for each order.
func (v accountView) Verdict() string {
	switch {
	case v.TooMany() > 0:
		return "over"
	case v.NotCharged() > 0:
		return "under"
	case v.Orders == 0:
		return "none"
	default:
		return "right"
	}
}

// Judgement is the verdict as a sentence.
func (v accountView) Judgement() string {
	switch v.Verdict() {
	case "none":
		return "No order so far."
	case "right":
		return "Each order charged once."
	}
	end := "."
	if v.NotCharged() > 0 {
		end = " so far."
	}
	return strings.Join(amiss(v.Account), ", ") + end
}

// amiss counts what is not as it should be in an account.
func amiss(a payments.Account) []string {
	var out []string
	if a.TooMany() > 0 {
		out = append(out, counted(a.TooMany(), "charge")+" too many")
	}
	if a.NotCharged() > 0 {
		out = append(out, counted(a.NotCharged(), "order")+" not charged")
	}
	return out
}

// Question asks for what the story's Why answers.
func (v accountView) Question() string {
	what := "charged " + times(v.Story.Charged)
	if v.Story.Charged == 0 {
		what = "not charged"
	}
	if v.Orders > 1 {
		return "Why was the latest order " + what + "?"
	}
	return "Why was it " + what + "?"
}

// counted writes a count with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return payments.Grouped(uint64(max(n, 0))) + " " + noun + "s"
}

// crowdView is a run of the crowd.
type crowdView struct {
	crowd.Report
	// Link leads to the page with the present choices. It is empty where the
	// script brings the progress by itself.
	Link string
}

// Any reports whether there has been a run.
func (v crowdView) Any() bool { return v.Shoppers > 0 }

// Held reports whether the run has held.
func (v crowdView) Held() bool { return v.Holds != nil && *v.Holds }

// Blame says whose the double charges are where the bank ignores its keys, and
// what Semel did all the same; nothing where it looks at them, or where there are
// none.
func (v crowdView) Blame() string {
	for _, p := range v.Doors {
		if p.Door != payments.Keyed || !v.BankForgets || v.NewKeys || p.Ledger.TooMany() == 0 {
			continue
		}
		text := "This bank ignores the keys that it is sent, so it charged each attempt that asked. "
		if p.Ledger.Payments == p.Ledger.Orders {
			text += "Semel stored each order once, and had all attempts at an order ask under one and the same operation id. "
		} else {
			text += "Semel had all attempts at an order ask under one and the same operation id. "
		}
		return text + "That is all that anything in front of a bank can do: the " + counted(p.Ledger.TooMany(), "charge") +
			" too many are the bank’s own. Choose one that looks at its keys under “Break it”, and run the same seed."
	}
	return ""
}

// LookedFirst says why looking a key up first has not helped, if it has not.
func (v crowdView) LookedFirst() string {
	for _, p := range v.Doors {
		if p.Door == payments.Naive && !v.NewKeys && p.Ledger.TooMany() > 0 {
			return "Looking first found a saved key " + times(p.Replayed) + ". Where it matters there is none yet: the key is saved last, and whoever " +
				"is killed after the charge has not saved it. Saving it also makes each request longer, so more of them are under way when the " +
				"service is killed. That is why it can take more too much than no key at all."
		}
	}
	return ""
}

// Orders is how many orders the run has, at all doors.
func (v crowdView) Orders() int { return v.Shoppers * len(v.Doors) }

// Rows are the doors in the order of the tills.
func (v crowdView) Rows() []crowdRow {
	var out []crowdRow
	for _, t := range tills {
		for _, p := range v.Doors {
			if p.Door == t.Door {
				out = append(out, crowdRow{Title: t.Title, Part: p, ofBank: p.Door == payments.Keyed && v.Blame() != ""})
			}
		}
	}
	return out
}

// crowdRow is a run at one till.
type crowdRow struct {
	Title string
	crowd.Part

	ofBank bool // what is amiss is the bank's
}

// Amiss reports whether an order was charged twice, or not at all.
func (v crowdRow) Amiss() bool { return len(amiss(*v.Ledger)) > 0 }

// Judgement says which.
func (v crowdRow) Judgement() string {
	if !v.Amiss() {
		return "each order charged once"
	}
	text := strings.Join(amiss(*v.Ledger), ", ")
	if v.ofBank {
		text += ", by a bank that ignores its keys"
	}
	return text
}

// Wanted, Taken and Over are money as the page shows it.
func (v crowdRow) Wanted() string { return payments.Money(v.Want) }

// Taken is what the bank took.
func (v crowdRow) Taken() string { return payments.Money(v.Ledger.Taken) }

// Over is how much it took too much.
func (v crowdRow) Over() string { return payments.Money(v.Ledger.Taken - v.Want) }
