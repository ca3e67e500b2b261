package shop

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
)

// The values of a ticked box, and of the choice between two banks.
const (
	ticked    = "on"
	remembers = "remembers"
	forgets   = "forgets"
)

// leases are the leases that the page offers; the second is how the service
// starts.
var leases = []string{"10s", "2s", "500ms", "100ms"}

// maxShown bounds how many steps a form may claim to have shown.
const maxShown = 10_000

// choices are all that a reader may choose. They are the page's form, and its
// link.
type choices struct {
	Fault fault
	Times int
	// Guess hides the truth until the reader has guessed, Step shows it hop by
	// hop, and Shown says how far, for each till.
	Guess bool
	Step  bool
	Shown map[payments.Door]int
	// NewKeys takes another key for each send, OtherAmount asks for another
	// amount from the second send on.
	NewKeys     bool
	OtherAmount bool
	// Lease and Bank are the settings of the processes behind.
	Lease string
	Bank  string
	Crowd crowd.Settings
}

// readChoices reads what values hold, and takes the default for what they do
// not. An error names the field and what it may hold.
func readChoices(values url.Values) (choices, error) {
	get := func(name, otherwise string) string {
		if values.Has(name) {
			return values.Get(name)
		}
		return otherwise
	}
	c := choices{
		Guess: get("guess", "") == ticked, Step: get("step", "") == ticked,
		NewKeys: get("newkeys", "") == ticked, OtherAmount: get("otheramount", "") == ticked,
		Shown: map[payments.Door]int{},
		Lease: get("lease", "2s"), Bank: get("bank", remembers),
	}
	var err error
	if c.Fault, c.Times, err = readFault(get("fault", noFault), get("times", "1")); err != nil {
		return choices{}, err
	}
	if !slices.Contains(leases, c.Lease) {
		return choices{}, fmt.Errorf("lease is %q, want one of %v", c.Lease, leases)
	}
	if c.Bank != remembers && c.Bank != forgets {
		return choices{}, fmt.Errorf("bank is %q, want %s or %s", c.Bank, remembers, forgets)
	}
	if c.Crowd.Seed, err = strconv.ParseUint(get("seed", "1"), 10, 64); err != nil {
		return choices{}, fmt.Errorf("seed is %q, want a whole number from zero on", get("seed", ""))
	}
	for _, n := range []struct {
		name, otherwise string
		least, most     int
		to              *int
	}{
		{"shoppers", "1000", 1, crowd.MaxShoppers, &c.Crowd.Shoppers},
		{"trouble", "10", 0, crowd.MaxTrouble, &c.Crowd.Trouble},
	} {
		value := get(n.name, n.otherwise)
		if *n.to, err = strconv.Atoi(value); err != nil || *n.to < n.least || *n.to > n.most {
			return choices{}, fmt.Errorf("%s is %q, want a number from %d to %d", n.name, value, n.least, n.most)
		}
	}
	c.Crowd.NewKeys = c.NewKeys
	for _, t := range tills {
		name := string(t.Door) + "-shown"
		n, err := strconv.Atoi(get(name, "1"))
		if err != nil || n < 0 || n > maxShown {
			return choices{}, fmt.Errorf("%s is %q, want how many steps are shown", name, get(name, ""))
		}
		c.Shown[t.Door] = n
	}
	return c, nil
}

// Link is the address of the page with these choices.
func (c choices) Link() string {
	v := url.Values{}
	for name, on := range map[string]bool{"guess": c.Guess, "step": c.Step, "newkeys": c.NewKeys, "otheramount": c.OtherAmount} {
		if on {
			v.Set(name, ticked)
		}
	}
	maps.Copy(v, url.Values{
		"fault": {c.Fault.Name()}, "times": {strconv.Itoa(c.Times)},
		"lease": {c.Lease}, "bank": {c.Bank},
		"seed":     {strconv.FormatUint(c.Crowd.Seed, 10)},
		"shoppers": {strconv.Itoa(c.Crowd.Shoppers)}, "trouble": {strconv.Itoa(c.Crowd.Trouble)},
	})
	return "/?" + v.Encode()
}
