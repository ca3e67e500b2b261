// Package scripts plays each fault of the reference system through, from the
// outside: a client that retries as a good client does places an order with a
// key and one without, the fault strikes, and at the end the money is counted.
//
// A script holds when the order with a key was paid exactly once and answered
// in time, and when the order without one shows the harm that the fault does
// there. It knows nothing but the public address, and, for the script that kills
// the client, how to start one.
package scripts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// AnswerWithin is how long a client with a key may be without an answer, from
// the first request on.
const AnswerWithin = 10 * time.Second

// All is the name that stands for all scripts.
const All = "all"

// Script is one fault, or another way of asking twice, and what follows.
type Script struct {
	Name string
	// What happens, in a line.
	What string
	// Lesson is what there is to learn.
	Lesson string

	fault    payments.Fault
	times    int           // how many payments meet the fault
	clicks   int           // how many clients send the same order at once
	patience time.Duration // how long a client waits for an answer
	asks     int64         // how often the bank is asked for the order with a key
	doubles  bool          // without a key the customer pays twice
	naive    bool          // the naive door is played too, and charges twice
	crash    bool          // it is the client that is killed
}

// patience is how long a client waits unless the script says otherwise.
const patience = 5 * time.Second

// List returns all scripts in the order in which they are played.
func List() []Script {
	list := []Script{
		{
			Name:   string(payments.RequestLost),
			fault:  payments.RequestLost,
			Lesson: "No answer, and nothing had happened. The client cannot see that: it looks just like reply-lost.",
		},
		{
			Name:    string(payments.ReplyLost),
			fault:   payments.ReplyLost,
			doubles: true,
			Lesson:  "No answer, and all had happened. With a key the repeat gets the answer that was lost; without, it pays again.",
		},
		{
			Name:   string(payments.KilledBeforeCharge),
			fault:  payments.KilledBeforeCharge,
			Lesson: "The dead attempt holds the key until its lease lapses (2 s); then the next request takes over.",
		},
		{
			Name:    string(payments.KilledAfterCharge),
			fault:   payments.KilledAfterCharge,
			asks:    2,
			doubles: true,
			Lesson:  "The money was taken and nobody wrote it down. The repeat charges under the same operation id, so the bank finds the first charge.",
		},
		{
			Name:     string(payments.Slow),
			fault:    payments.Slow,
			patience: 2 * time.Second,
			doubles:  true,
			Lesson:   "The client gave up, the work did not. With a key the repeat is told to wait (409) and then gets the answer.",
		},
		{
			Name:   string(payments.BankError),
			fault:  payments.BankError,
			asks:   2,
			Lesson: "The 502 is not kept. The repeat asks the bank again under the same id, so it would be safe even if the bank had taken the money.",
		},
		{
			Name:    "double-click",
			What:    "the same order is sent twice at once, while the bank is slow",
			fault:   payments.Slow,
			times:   2,
			clicks:  2,
			doubles: true,
			naive:   true,
			Lesson:  "Looking the key up first and saving it afterwards does not help: both looked before either saved. The key has to be claimed before the work.",
		},
		{
			Name:   "client-crash",
			What:   "the client is killed (SIGKILL) after the payment service has answered, before it reads the answer",
			crash:  true,
			Lesson: "The key has to be on disk before the first byte leaves. Then whoever comes next sends it again, and is given the answer that nobody read.",
		},
	}
	for i := range list {
		list[i].complete()
	}
	return list
}

func (s *Script) complete() {
	if s.What == "" {
		s.What = s.fault.What()
	}
	s.times = max(s.times, 1)
	s.clicks = max(s.clicks, 1)
	s.asks = max(s.asks, 1)
	if s.patience == 0 {
		s.patience = patience
	}
}

// Find returns the script of that name, or all of them for All. The error
// lists the names.
func Find(name string) ([]Script, error) {
	list := List()
	if name == All {
		return list, nil
	}
	i := slices.IndexFunc(list, func(s Script) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no script %q; there are %s and %s", name, Names(), All)
	}
	return list[i : i+1], nil
}

// Names lists the names of all scripts.
func Names() string {
	names := make([]string, 0, len(List()))
	for _, s := range List() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
