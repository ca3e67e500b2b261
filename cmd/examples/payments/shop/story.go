package shop

import (
	"fmt"
	"slices"
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

// storyView is what a till shows of its latest order: the picture, and whether
// the money has to wait for it.
type storyView struct {
	till
	Drawing drawing
	// Asked says that the reader is to guess first, and Guess what was
	// guessed, if something was.
	Asked bool
	Guess guess
	// Charged is how often the bank took money for it, and Why says in words
	// what made it so.
	Charged int
	Why     string
	// Order is the name of the order that is drawn, if it has one.
	Order string
}

// guess is what a reader said of an order: "yes", "no" or nothing, and how
// often the bank had taken money for it at that moment.
type guess struct {
	Said    string
	Charged int
}

// Verdict says whether the guess was right when it was made, and what has come
// since.
func (v storyView) Verdict() string {
	said := "You said " + v.Guess.Said
	if (v.Guess.Said == doYes) == (v.Guess.Charged > 0) {
		said += ", and you were right"
	}
	truth := "It was not charged."
	if v.Guess.Charged > 0 {
		truth = "It was charged " + times(v.Guess.Charged) + "."
	}
	said += ". " + truth + " The client could not know."
	if since := v.Charged - v.Guess.Charged; since > 0 {
		said += " It has been charged " + times(since) + " since."
	}
	return said
}

// times writes how often something was.
func times(n int) string {
	switch n {
	case 0:
		return "not at all"
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// Covered says that the money is not shown yet.
func (v storyView) Covered() bool { return v.Asked || v.Drawing.Hidden > 0 }

// story makes a till's view out of the log and of what the reader asked for.
// It is that of the latest order. Who guesses or goes step by step stays with
// own, the order of the page, once that was sent: nobody could answer for an
// order that another page sent, and its steps would come between.
func (s *shop) story(t till, log []front.Entry, c choices, own string) storyView {
	mine := requestsOf(log, t.Door, own)
	hops := storyOf(mine)
	if c.Guess && unanswered(hops) && s.guesses.of(t.Door, own).Said == "" {
		outside := seenFromOutside(hops)
		return storyView{till: t, Asked: true, Order: own, Drawing: drawn(t, s.store, outside, len(outside))}
	}
	requests := latest(log, t.Door)
	if c.ownOrder() && own != "" && len(mine) > 0 {
		requests = mine
	}
	hops = storyOf(requests)
	v := storyView{till: t, Charged: charges(hops), Why: why(t, requests)}
	if len(requests) > 0 {
		v.Order = requests[0].Order
		v.Guess = s.guesses.of(t.Door, requests[0].Order)
	}
	shown := len(hops)
	if c.Step {
		shown = min(shown, c.Shown[t.Door])
	}
	v.Drawing = drawn(t, s.store, hops, shown)
	return v
}

// ownOrder reports whether the page shows its own order where it has one, and
// not the latest of all pages.
func (c choices) ownOrder() bool { return c.Guess || c.Step }

// unanswered reports whether the browser heard nothing, and no answer since
// that leaves nothing to guess.
func unanswered(hops []hop) bool {
	silent := slices.ContainsFunc(hops, func(h hop) bool { return h.Mark == markUnknown })
	return silent && !slices.ContainsFunc(hops, func(h hop) bool { return h.Final })
}

// latest returns the requests of the last order at a door, oldest first. A
// request that names no order is one by itself.
func latest(log []front.Entry, door payments.Door) []front.Entry {
	for _, r := range slices.Backward(log) {
		if r.Door != door {
			continue
		}
		if r.Order == "" {
			return []front.Entry{r}
		}
		return requestsOf(log, door, r.Order)
	}
	return nil
}

// requestsOf returns the requests of an order at a door, oldest first.
func requestsOf(log []front.Entry, door payments.Door, order string) []front.Entry {
	var out []front.Entry
	for _, r := range log {
		if r.Door == door && r.Order == order {
			out = append(out, r)
		}
	}
	return out
}

// charges is how often the bank took money in a story.
func charges(hops []hop) int {
	n := 0
	for _, h := range hops {
		if h.Mark == markMoney {
			n++
		}
	}
	return n
}

// seenFromOutside is the story as the browser could tell it: what it sent, and
// what came back or did not.
func seenFromOutside(hops []hop) []hop {
	var out []hop
	for _, h := range hops {
		switch {
		case h.Mark == markUnknown, h.Mark == markAnswer && h.To == browser:
		case h.From == browser:
			h.Mark = markAsk
		default:
			continue
		}
		h.Line = "" // it may say too much
		out = append(out, h)
	}
	return out
}

// guessLimit is how many guesses are remembered.
const guessLimit = 4096

// guesses remember what was guessed of which order, the latest ones.
type guesses struct {
	mu    sync.Mutex
	made  map[string]guess
	queue []string
	limit int
}

func newGuesses(limit int) *guesses { return &guesses{made: map[string]guess{}, limit: limit} }

// of returns the guess for an order, or nothing.
func (g *guesses) of(door payments.Door, order string) guess {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.made[string(door)+" "+order]
}

// make notes the first guess for an order; later ones are no guesses.
func (g *guesses) make(door payments.Door, order string, said guess) {
	name := string(door) + " " + order
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made[name].Said != "" {
		return
	}
	if len(g.queue) == g.limit {
		delete(g.made, g.queue[0])
		g.queue = g.queue[1:]
	}
	g.made[name] = said
	g.queue = append(g.queue, name)
}
