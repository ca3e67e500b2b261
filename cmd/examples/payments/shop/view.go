package shop

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// pageView is what page.html shows.
type pageView struct {
	Watch  watchView
	Tills  []tillView
	Faults []fault
	// Fault and Times are the present choice, Counts the choices of Times.
	Fault  string
	Times  int
	Counts []int
	Price  string
	// Payment is the body of every payment request.
	Payment string
	// Patience is how long a till waits for an answer.
	Patience time.Duration
}

// watchView is what changes by itself.
type watchView struct {
	// Accounts are those of the tills, in the tills' order.
	Accounts []accountView
	Armed    armed
	// Requests are the recent ones, newest first.
	Requests []requestView
	// Troubles say what could not be read, and why.
	Troubles []string
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
	Tries   []try
	Account accountView
	Price   string
}

// Sayings is everything the till may say.
func (v tillView) Sayings() []saying { return v.sayings() }

// accountView says in words what an account holds.
type accountView struct {
	payments.Account
	Door payments.Door
	// Known is false if the ledger could not be read.
	Known bool
}

// Sum is the money taken.
func (v accountView) Sum() string { return money(v.Taken) }

// For says what the money was taken for. The price stands there only while
// every charge was of it.
func (v accountView) For() string {
	text := "taken for " + counted(v.Orders, "order")
	if v.Orders > 0 && v.Taken == v.Charges*amount {
		text += " of " + money(amount)
		if v.Orders > 1 {
			text += " each"
		}
	}
	return text
}

// Verdict is "right", "over", "under" or "none": whether the bank took money as
// often as there were orders.
func (v accountView) Verdict() string {
	switch {
	case v.Charges > v.Orders:
		return "over"
	case v.Charges < v.Orders:
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
	case "over":
		return counted(v.Charges-v.Orders, "charge") + " too many."
	case "under":
		return counted(v.Orders-v.Charges, "order") + " not charged so far."
	case "right":
		return "Each order charged once."
	default:
		return "No order so far."
	}
}

// money writes minor units as dollars.
func money(minor int64) string {
	sign, n := "", uint64(minor)
	if minor < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s$%s.%02d", sign, grouped(n/100), n%100)
}

// grouped writes n with a comma before every third digit.
func grouped(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// counted writes a count with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(uint64(max(n, 0))) + " " + noun + "s"
}
