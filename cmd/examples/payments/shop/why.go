package shop

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

// facts are what the log says of an order.
type facts struct {
	sends, charges int
	// keys is how many different ones the sends carried.
	keys int
	// came is what the first send came to, and silent whether nothing was heard
	// of it.
	came   string
	silent bool
	// What Semel's store and the bank have said.
	held, unknown, tookOver, replayed, reused, knew, released bool
	// found is whether the naive door found a saved key, and both whether two
	// looked before either had saved it.
	found, both bool
}

// why says in two or three sentences why the bank took money for an order as
// often as it did, from what the log has of it.
func why(t till, requests []front.Entry) string {
	if len(requests) == 0 {
		return ""
	}
	f := factsOf(requests)
	parts := []string{f.came}
	switch {
	case f.silent && f.sends == 2:
		parts = append(parts, "No answer came, so it was sent again.")
	case f.silent && f.sends > 2:
		parts = append(parts, fmt.Sprintf("No answer came, so it was sent again: %d sends in all.", f.sends))
	case f.silent:
		parts = append(parts, "No answer came, and it has not been sent again so far.")
	}
	switch {
	case f.sends == 1 && f.came == "":
		parts = append(parts, f.once(t))
	case f.sends == 1: // that is all
	case t == keyless:
		parts = append(parts, f.keyless())
	case t == naive:
		parts = append(parts, f.naive())
	default:
		parts = append(parts, f.semel()...)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// factsOf reads the requests of one order.
func factsOf(requests []front.Entry) facts {
	f := facts{sends: len(requests)}
	keys, saved := map[string]bool{}, false
	looked := 0
	for _, r := range requests {
		keys[r.Key] = true
	}
	f.keys = len(keys)
	for _, l := range linesOf(requests) {
		switch {
		case l.Msg == payments.LineCharge && l.Answer == payments.ChargeTaken:
			f.charges++
		case l.Msg == payments.LineCharge && l.Answer == payments.ChargeKnown:
			f.knew = true
		case l.Msg == payments.LineLooked && l.Found:
			f.found = true
		case l.Msg == payments.LineLooked && !saved:
			looked++
		case l.Msg == payments.LineSavedKey:
			saved = true
		case l.Msg == payments.LineSemel:
			f.event(l.Event)
		}
	}
	f.both = looked > 1
	var second []line
	if len(requests) > 1 {
		second = linesOf(requests[1:2])
	}
	f.came, f.silent = first(linesOf(requests[:1]), second, len(requests))
	return f
}

// event notes what Semel's store has said.
func (f *facts) event(name string) {
	switch name {
	case semel.EventInProgress.String():
		f.held = true
	case semel.EventTakeover.String():
		f.tookOver = true
	case semel.EventUnknown.String():
		f.unknown = true
	case semel.EventReplayed.String():
		f.replayed = true
	case semel.EventKeyReused.String():
		f.reused = true
	case semel.EventReleased.String():
		f.released = true
	}
}

// first says what the first send came to, or nothing of one that was answered
// or still is on its way, and whether its client heard nothing. second are the
// lines of the next of the sends.
func first(lines, second []line, sends int) (came string, silent bool) {
	charged := false
	for _, l := range lines {
		if len(second) > 0 && second[0].Time.Before(l.Time) && l.ends() {
			return "It was sent " + times(sends) + ", the second before the first had its answer.", false
		}
		switch {
		case l.Msg == payments.LineCharge && l.Answer == payments.ChargeTaken:
			charged = true
		case l.Msg == payments.LineRequestLost:
			return "The first send never arrived.", true
		case l.Msg == payments.LineReplyLost:
			return "The work was done and its answer was lost.", true
		case l.Msg == payments.LineClientGone:
			return "The client was gone before the answer came, and the work went on.", true
		case l.died() && charged:
			return "The service was killed after the bank had taken the money.", true
		case l.died():
			return "The service was killed before it asked the bank.", true
		case l.Msg == payments.LineReplyPassed && l.Status == http.StatusServiceUnavailable:
			return "The service or its store was not there, and the answer said so.", false
		case l.Msg == payments.LineReplyPassed && l.Status == http.StatusBadGateway:
			return "The bank failed, and the answer said so.", false
		case l.Msg == payments.LineReplyPassed && l.Status >= http.StatusInternalServerError:
			return "The service failed, and the answer said so.", false
		}
	}
	return "", false
}

// ends reports whether the line is the end of its request, as far as the front
// can tell.
func (l line) ends() bool {
	switch l.Msg {
	case payments.LineRequestLost, payments.LineReplyLost, payments.LineReplyPassed, payments.LineClientGone, payments.LineBroke, payments.LineEnded:
		return true
	}
	return false
}

// died reports whether the line is the end of the payment service.
func (l line) died() bool { return l.Msg == payments.LineEnded && l.Which == "service" }

// once is about an order that was sent once.
func (f facts) once(t till) string {
	switch {
	case f.charges == 0:
		return "It was sent once, and the bank has taken nothing for it so far."
	case t == keyless:
		return "It was sent once. Nothing here would notice a second send."
	case t == naive:
		return "It was sent once. The key is saved last, so until then a second send would not be noticed."
	default:
		return "It was sent once. The key was claimed before the bank was asked."
	}
}

// keyless is about an order without a key.
func (f facts) keyless() string {
	switch f.charges {
	case 0:
		return "No send has made the bank take anything."
	case 1:
		return "Only one send made the bank take money. That was luck: nothing tells a repeat from a second order."
	default:
		return fmt.Sprintf("Nothing tells a repeat from a second order, so the bank was asked as if there were %d.", f.charges)
	}
}

// naive is about a key that is looked up first and saved last.
func (f facts) naive() string {
	switch {
	case f.charges > 1 && f.keys > 1:
		return "Each send carried another key, so none was found."
	case f.charges > 1 && f.both:
		return "The key is saved last. Each send looked before one was saved, found nothing, and charged."
	case f.charges > 1:
		return "The key that had been saved was not found."
	case f.found:
		return "By then the key had been saved: the repeat found it, and got the same answer."
	case f.charges == 1:
		return "The first send had charged nothing, so charging now was right. That was luck: the door cannot tell."
	default:
		return "No send has made the bank take anything."
	}
}

// semel is about a key that is claimed first.
func (f facts) semel() []string {
	if f.charges > 1 && f.keys > 1 {
		return []string{"Each send carried another key. To Semel these are different orders, and nothing behind can know better."}
	}
	if f.charges > 1 {
		return []string{"Both attempts asked the bank under the same id, and this bank ignores it. Semel can only make the id the same."}
	}
	var parts []string
	for _, part := range []struct {
		so   bool
		text string
	}{
		{f.held, "While an attempt held the key, the repeat was told to wait (409)."},
		{f.tookOver && f.knew, "Then a later send took the key over and asked the bank under the same id. The bank knew it, and took nothing more."},
		{f.tookOver && f.unknown && !f.knew, "Nobody knew how the first attempt ended, so a later send took its key over and asked the bank under the same id, which had taken nothing."},
		{f.tookOver && !f.unknown && !f.knew, "Then a later send took the key over from the dead attempt and charged, once."},
		{f.released, "The failed attempt gave its key back, and the repeat ran under the same one."},
		{f.replayed, "The repeat carried the same key and got the saved answer. The bank was not asked again."},
		{f.reused, "The repeat asked for another amount under the same key: refused (422), and nothing ran."},
	} {
		if part.so {
			parts = append(parts, part.text)
		}
	}
	if len(parts) == 0 && f.charges == 1 {
		parts = append(parts, "The repeat was the first to claim the key.")
	}
	return parts
}
