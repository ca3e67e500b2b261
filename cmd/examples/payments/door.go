package payments

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/semel-dev/semel"
)

// Door is a way into the payment service. All three lead to the same business
// function; they differ in what stands before it.
type Door string

// The doors.
const (
	// Keyed is POST /payments: Semel, in joined mode.
	Keyed Door = "keyed"
	// Keyless is POST /unsafe/payments: nothing.
	Keyless Door = "keyless"
	// Naive is POST /naive/payments: look the key up, work, save the key
	// afterwards.
	Naive Door = "naive"
)

// Doors are all doors, in the order in which they are shown.
func Doors() []Door { return []Door{Keyed, Keyless, Naive} }

// Path returns where the door is.
func (d Door) Path() string {
	switch d {
	case Keyless:
		return "/unsafe/payments"
	case Naive:
		return "/naive/payments"
	default:
		return "/payments"
	}
}

// DoorOf returns the door that r goes through, and whether it does.
func DoorOf(r *http.Request) (Door, bool) {
	if r.Method != http.MethodPost {
		return "", false
	}
	i := slices.IndexFunc(Doors(), func(d Door) bool { return d.Path() == r.URL.Path })
	if i < 0 {
		return "", false
	}
	return Doors()[i], true
}

// The headers that clients of the system send.
const (
	// HeaderKey is the key: for Semel, for the naive door and for the bank.
	HeaderKey = "Idempotency-Key"
	// HeaderCustomer stands in for a login: whose request it is.
	HeaderCustomer = "X-Customer-Id"
	// HeaderOrder names the order, so that the ledger can tell a repeat from a
	// second order, whatever key it carries. Nothing else reads it.
	HeaderOrder = "X-Order-Id"
	// HeaderFault is a fault that the request itself asks to meet.
	HeaderFault = "X-Demo-Fault"
)

// Crowd is the customer of thousands of orders at once. The front's log leaves
// their requests out, and their money is in accounts of their own: see
// [Door.AccountOf].
const Crowd = "crowd"

// Anonymous is the customer of a request without HeaderCustomer.
const Anonymous = "anonymous"

// CustomerOf returns whose request r is.
func CustomerOf(r *http.Request) string {
	if c := r.Header.Get(HeaderCustomer); c != "" {
		return c
	}
	return Anonymous
}

// AccountOf names the account in which order book, service and bank count what
// a customer does at d. The crowd has one of its own, so that a till shows the
// money of whoever stands at it, and a run is held against nobody else's.
func (d Door) AccountOf(customer string) AccountName {
	if customer == Crowd {
		return AccountName(d + "/" + Crowd)
	}
	return AccountName(d)
}

// MaxCustomer is the longest customer id at the door with Semel, in bytes.
const MaxCustomer = 128

// ScopeOf is whose key it is and for which operation, or why that cannot be
// said. In the demo the customer says who they are; a real service takes it
// from the login.
func ScopeOf(r *http.Request) (string, error) {
	customers := r.Header.Values(HeaderCustomer)
	switch {
	case len(customers) > 1:
		return "", fmt.Errorf("%s is sent %d times", HeaderCustomer, len(customers))
	case len(customers) == 1 && len(customers[0]) > MaxCustomer:
		return "", fmt.Errorf("%s has %d bytes; the most is %d", HeaderCustomer, len(customers[0]), MaxCustomer)
	}
	return "payments:" + CustomerOf(r), nil
}

// MaxNaiveKey is the longest key at the naive door, in bytes: the longest that
// Semel takes, with the quotes that the naive door does not know to be quotes.
const MaxNaiveKey = semel.MaxKeyLength + len(`""`)

// NaiveKeyOf returns the key of r as the naive door has it, which is whatever
// the header says, or why it refuses r.
func NaiveKeyOf(r *http.Request) (string, *Problem) {
	var problem *Problem
	switch key := r.Header.Get(HeaderKey); {
	case key == "":
		problem = NewProblem(http.StatusBadRequest, "key-missing", "send an "+HeaderKey)
	case len(key) > MaxNaiveKey:
		problem = NewProblem(http.StatusBadRequest, "key-too-long", fmt.Sprintf("%s has %d bytes; the most is %d", HeaderKey, len(key), MaxNaiveKey))
	default:
		return key, nil
	}
	problem.Field = HeaderKey
	return "", problem
}

// The headers that the processes send to each other. The front drops them from
// requests that come from outside.
const (
	// InternalFault says which fault this one request meets.
	InternalFault = "Semel-Demo-Fault"
	// InternalRequest numbers the request, so that log lines find it.
	InternalRequest = "Semel-Demo-Request"
	// InternalAccount tells the bank to which account of the ledger a charge
	// belongs: see [Door.AccountOf].
	InternalAccount = "Semel-Demo-Account"
	// InternalOrder is the order's number in the front's order book, so that the
	// bank's charges can be held against orders one by one.
	InternalOrder = "Semel-Demo-Order"
)

// StripInternal removes the internal headers.
func StripInternal(h http.Header) {
	h.Del(InternalFault)
	h.Del(InternalRequest)
	h.Del(InternalAccount)
	h.Del(InternalOrder)
}
