package shop

import (
	"cmp"
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

// leases are the leases that the page offers.
var leases = []string{"10s", "2s", "500ms", "100ms"}

// offered are the leases, with the chosen one.
func (c choices) offered() []string {
	if c.Lease == "" || slices.Contains(leases, c.Lease) {
		return leases
	}
	return append([]string{c.Lease}, leases...)
}

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
	settings
	Crowd crowd.Settings
}

// settings are those of the processes behind. What is empty is left as it is:
// the processes are everybody's.
type settings struct {
	Lease string
	Bank  string
}

// or is s where it says something, and else what now says.
func (s settings) or(now settings) settings {
	return settings{Lease: cmp.Or(s.Lease, now.Lease), Bank: cmp.Or(s.Bank, now.Bank)}
}

// readChoices reads what values hold, and takes the default for what they do
// not and for the crowd, which readCrowd reads. An error names the field and
// what it may hold.
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
		Shown:    map[payments.Door]int{},
		settings: settings{Lease: get("lease", ""), Bank: get("bank", "")},
	}
	var err error
	if c.Fault, c.Times, err = readFault(get("fault", payments.FaultName(firstFault)), get("times", "1")); err != nil {
		return choices{}, err
	}
	if c.Lease != "" {
		d, err := payments.ParseLease(c.Lease)
		if err != nil {
			return choices{}, err
		}
		c.Lease = d.String() // as the service says it
	}
	if c.Bank != "" && c.Bank != remembers && c.Bank != forgets {
		return choices{}, fmt.Errorf("bank is %q, want %s or %s", c.Bank, remembers, forgets)
	}
	c.Crowd = crowd.Settings{Seed: 1, Shoppers: crowd.DefaultShoppers, Trouble: crowd.DefaultTrouble, NewKeys: c.NewKeys}
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

// readCrowd reads the crowd's settings into c, and leaves those that values do
// not hold. An error names the field and what it may hold; c is unchanged then.
func (c *choices) readCrowd(values url.Values) error {
	read := c.Crowd
	if values.Has("seed") {
		seed, err := strconv.ParseUint(values.Get("seed"), 10, 64)
		if err != nil {
			return fmt.Errorf("seed is %q, want a whole number from zero on", values.Get("seed"))
		}
		read.Seed = seed
	}
	for _, n := range []struct {
		name        string
		least, most int
		to          *int
	}{
		{"shoppers", 1, crowd.MaxShoppers, &read.Shoppers},
		{"trouble", 0, crowd.MaxTrouble, &read.Trouble},
	} {
		if !values.Has(n.name) {
			continue
		}
		value, err := strconv.Atoi(values.Get(n.name))
		if err != nil || value < n.least || value > n.most {
			return fmt.Errorf("%s is %q, want a number from %d to %d", n.name, values.Get(n.name), n.least, n.most)
		}
		*n.to = value
	}
	c.Crowd = read
	return nil
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
		"seed":     {strconv.FormatUint(c.Crowd.Seed, 10)},
		"shoppers": {strconv.Itoa(c.Crowd.Shoppers)}, "trouble": {strconv.Itoa(c.Crowd.Trouble)},
	})
	if c.Lease != "" {
		v.Set("lease", c.Lease)
	}
	if c.Bank != "" {
		v.Set("bank", c.Bank)
	}
	return "/?" + v.Encode()
}
