package scripts

import (
	"fmt"
	"io"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// Print writes the report for people.
func (rp Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", rp.Script, rp.What)
	for _, part := range rp.Doors {
		part.print(w)
	}
	if rp.Lesson != "" {
		fmt.Fprintf(w, "  %s\n", rp.Lesson)
	}
}

var doorTitles = map[payments.Door]string{
	payments.Keyed:   "With a key",
	payments.Keyless: "Without a key",
	payments.Naive:   "With a key that is looked up first and saved last",
}

// title says who places the order.
func (p Part) title() string {
	switch p.Keeps {
	case onDisk:
		return "A client that keeps its intent on disk"
	case inMemory:
		return "A client that keeps its intent in memory"
	}
	return doorTitles[p.Door]
}

func (p Part) print(w io.Writer) {
	fmt.Fprintf(w, "  %s (POST %s), an order of %s:\n", p.title(), p.Door.Path(), payments.Money(p.Price))
	sent := map[int]bool{}
	for _, t := range p.Tries {
		what := fmt.Sprintf("client %d sends the order", t.Client)
		switch {
		case t.Process != 0:
			what = p.sentBy(t)
		case sent[t.Client]:
			what = fmt.Sprintf("client %d sends it again", t.Client)
		}
		sent[t.Client] = true
		fmt.Fprintf(w, "  %6.2f s  %s; at %.2f s: %s\n", t.At, what, t.At+t.Took, t.Saw)
	}
	fmt.Fprintf(w, "    ledger  %s, %s; the bank took %s in %s. %s\n",
		count(p.Ledger.Orders, "order"), count(p.Ledger.Payments, "payment"),
		payments.Money(p.Ledger.Taken), count(p.Ledger.Charges, "charge"), p.verdict())
	if p.Asked > 1 {
		often := "once"
		if p.Ledger.Charges > 1 {
			often = count(p.Ledger.Charges, "time")
		}
		fmt.Fprintf(w, "            The bank was asked %d times under %s, and took the money %s.\n", p.Asked, payments.Short(p.Payment), often)
	}
}

// verdict says what the figures mean for the customer.
func (p Part) verdict() string {
	switch {
	case p.Broken != "":
		return "BROKEN: " + p.Broken + "."
	case p.Ledger.TooMany() > 0:
		return "The customer paid twice."
	}
	return "Right."
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
