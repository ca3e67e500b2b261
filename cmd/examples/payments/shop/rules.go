package shop

import (
	"slices"

	"github.com/semel-dev/semel/cmd/examples/payments/client"
)

// rules are what the script goes by, so that it decides nothing that the server
// decides for a page without it.
type rules struct {
	// Told is what an answer tells, by its status, in the order of theirs.
	Told []told `json:"told"`
	// One is what is known of an order in a state after other news,
	// One[state][news], and Several the same where several of its sends may have
	// been charged.
	One     map[state]map[state]state `json:"one"`
	Several map[state]map[state]state `json:"several"`
	// Settled are the states that end an order.
	Settled []state `json:"settled"`
	// OrderLength and KeyLength are those of the random parts of an order's
	// number and of a key, and Cookie holds them for pages without the script.
	OrderLength int    `json:"orderLength"`
	KeyLength   int    `json:"keyLength"`
	Cookie      string `json:"cookie"`
}

// told is what an answer with a status from From to To tells.
type told struct {
	From  int   `json:"from"`
	To    int   `json:"to"`
	State state `json:"state"`
}

func newRules() rules {
	r := rules{
		One: map[state]map[state]state{}, Several: map[state]map[state]state{},
		OrderLength: orderLength, KeyLength: keyLength, Cookie: cookieName,
	}
	news := []state{stateUnknown}
	for status := 200; status < 600; status++ {
		tells := try{answer: client.Answer{Status: status}, answered: true}.state()
		if last := len(r.Told) - 1; last >= 0 && r.Told[last].State == tells {
			r.Told[last].To = status
			continue
		}
		r.Told = append(r.Told, told{From: status, To: status, State: tells})
		news = append(news, tells)
	}
	for _, s := range ranks {
		r.One[s], r.Several[s] = map[state]state{}, map[state]state{}
		for _, n := range news {
			r.One[s][n], r.Several[s][n] = s.then(n, false), s.then(n, true)
		}
		if s.settled() {
			r.Settled = append(r.Settled, s)
		}
	}
	slices.Sort(r.Settled)
	return r
}
