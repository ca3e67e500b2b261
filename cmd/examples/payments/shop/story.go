package shop

import (
	"fmt"
	"slices"
	"sync"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// storyView is what a till shows of its latest order: the picture, and whether
// the money has to wait for it.
type storyView struct {
	till
	Drawing drawing
	// Order is whose story it is; empty before the first.
	Order string
	// Asked says that the reader is to guess first, and Guess what was
	// guessed: "yes", "no" or nothing.
	Asked bool
	Guess string
	// Charged is how often the bank took money for it.
	Charged int
}

// Verdict says whether the guess was right.
func (v storyView) Verdict() string {
	truth := "It was not charged so far."
	switch {
	case v.Charged == 1:
		truth = "It was charged once."
	case v.Charged > 1:
		truth = fmt.Sprintf("It was charged %d times.", v.Charged)
	}
	right := (v.Guess == doYes) == (v.Charged > 0)
	if right {
		return "You said " + v.Guess + ", and you were right. " + truth + " The client could not know."
	}
	return "You said " + v.Guess + ". " + truth + " The client could not know."
}

// Covered says that the money is not shown yet.
func (v storyView) Covered() bool { return v.Asked || v.Drawing.Hidden > 0 }

// story makes a till's view out of the log and of what the reader asked for.
func (s *shop) story(t till, log []request, c choices) storyView {
	requests := latest(log, t.Door)
	v := storyView{till: t}
	if len(requests) == 0 {
		v.Drawing = drawn(t, nil, 0)
		return v
	}
	v.Order = requests[0].Order
	v.Guess = s.guesses.of(t.Door, v.Order)
	hops := storyOf(requests)
	silent, settled := false, false
	for _, h := range hops {
		silent = silent || h.Mark == markUnknown
		settled = settled || h.Final
		if h.Mark == markMoney {
			v.Charged++
		}
	}
	// Once there is an answer there is nothing left to guess.
	if v.Asked = c.Guess && silent && !settled && v.Guess == ""; v.Asked {
		hops = seenFromOutside(hops)
	}
	shown := len(hops)
	if c.Step && !v.Asked {
		shown = min(shown, c.Shown[t.Door])
	}
	v.Drawing = drawn(t, hops, shown)
	return v
}

// latest returns the requests of the last order at a door, oldest first. A
// request that names no order is one by itself.
func latest(log []request, door payments.Door) []request {
	var out []request
	for _, r := range slices.Backward(log) {
		if r.Door != door {
			continue
		}
		if len(out) > 0 && (r.Order == "" || r.Order != out[0].Order) {
			continue
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	return out
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

// guesses remember what was guessed of which order, the latest ones.
type guesses struct {
	mu    sync.Mutex
	made  map[string]string
	queue []string
	limit int
}

func newGuesses(limit int) *guesses { return &guesses{made: map[string]string{}, limit: limit} }

// of returns the guess for an order, or nothing.
func (g *guesses) of(door payments.Door, order string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.made[string(door)+" "+order]
}

// make notes the first guess for an order; later ones are no guesses.
func (g *guesses) make(door payments.Door, order, guess string) {
	name := string(door) + " " + order
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made[name] != "" {
		return
	}
	if len(g.queue) == g.limit {
		delete(g.made, g.queue[0])
		g.queue = g.queue[1:]
	}
	g.made[name] = guess
	g.queue = append(g.queue, name)
}
