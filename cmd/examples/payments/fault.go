package payments

import (
	"slices"
	"strings"
	"time"
)

// Fault is something that can go wrong on the way, by its name.
type Fault string

// The faults. NoFault is the name of none.
const (
	NoFault            Fault = ""
	RequestLost        Fault = "request-lost"
	ReplyLost          Fault = "reply-lost"
	KilledBeforeCharge Fault = "killed-before-charge"
	KilledAfterCharge  Fault = "killed-after-charge"
	Slow               Fault = "slow"
	BankError          Fault = "bank-error"
)

// SlowFor is how long the bank takes under the fault Slow.
const SlowFor = 3 * time.Second

// Faults are all faults, in the order in which a request meets them.
func Faults() []Fault {
	return []Fault{RequestLost, KilledBeforeCharge, BankError, Slow, KilledAfterCharge, ReplyLost}
}

// What says in a line what the fault does.
func (f Fault) What() string {
	switch f {
	case RequestLost:
		return "the connection breaks before the request reaches the payment service"
	case ReplyLost:
		return "the payment service answers, and the connection breaks before the answer arrives"
	case KilledBeforeCharge:
		return "the payment service is killed (SIGKILL) before it asks the bank"
	case KilledAfterCharge:
		return "the payment service is killed (SIGKILL) after the bank took the money, before it could save that"
	case Slow:
		return "the bank takes " + SlowFor.String()
	case BankError:
		return "the bank answers 500 and takes nothing"
	default:
		return "nothing goes wrong"
	}
}

// ParseFault returns the fault of that name.
func ParseFault(name string) (Fault, bool) {
	f := Fault(name)
	return f, slices.Contains(Faults(), f)
}

// NoFaultName is how a request asks for no fault, also when one is armed.
const NoFaultName = "none"

// FaultName is the name of f in HeaderFault.
func FaultName(f Fault) string {
	if f == NoFault {
		return NoFaultName
	}
	return string(f)
}

// FaultNames lists the names, for messages.
func FaultNames() string {
	names := make([]string, 0, len(Faults()))
	for _, f := range Faults() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}
