package shop

import (
	"fmt"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/crowd"
	"github.com/semel-dev/semel/cmd/examples/payments/front"
)

// How a till whose page runs the script sends again by itself.
const (
	// maxTries is how often it sends before it leaves the next to the person.
	maxTries = 12
	// firstPause is how long it waits after the first send; the pause doubles
	// with each, up to longestPause. An answer may say how long.
	firstPause   = 250 * time.Millisecond
	longestPause = 2 * time.Second
)

// limits are the numbers that the page and its script go by.
type limits struct {
	Patience, FirstPause, LongestPause time.Duration
	Tries, Latest                      int
	Shoppers, Trouble                  int
}

// newLimits are those of a page whose tills wait so long for an answer.
func newLimits(patience time.Duration) limits {
	return limits{
		Patience: patience, FirstPause: firstPause, LongestPause: longestPause,
		Tries: maxTries, Latest: shownRequests,
		Shoppers: crowd.MaxShoppers, Trouble: crowd.MaxTrouble,
	}
}

// parameter is one number of the demo, and what it means.
type parameter struct{ Name, Value, Meaning string }

// Parameters are all of them that nobody chooses on the page.
func (l limits) Parameters() []parameter {
	return []parameter{
		{"Patience", l.Patience.String(), "A till waits so long for an answer. Then it does not know."},
		{"Pauses", fmt.Sprintf("%v to %v", l.FirstPause, l.LongestPause), "Before a till sends again: twice as long each time, or what Retry-After says."},
		{"Tries", fmt.Sprint(l.Tries), "A till sends so often by itself, and then leaves it to you. Without JavaScript each send is a press."},
		{"Slow", payments.SlowFor.String(), "The bank takes so long under the fault Slow: longer than a till waits."},
		{"Seed", "of the crowd only", "An order at a till draws nothing: price, fault and pauses are the same at all three. Only its number and its key are random, since they must be new."},
		{"Crowd: on their way", fmt.Sprint(crowd.AtOnce), "So many requests of all shoppers at most, at the same time."},
		{"Crowd: patience", crowd.Patience.String(), "A shopper waits so long for an answer."},
		{"Crowd: pauses", fmt.Sprintf("%v to %v", crowd.MinPause, crowd.MaxPause), "Before a shopper sends again, drawn from the seed, or what Retry-After says."},
		{"Crowd: count", crowd.SettleWithin.String(), "The money is counted so long after the last answer: the bank may still be busy with a request that nobody waits for."},
		{"Crowd: end", crowd.Within.String(), "A run ends then, whoever is still without an answer, and says so."},
		{"Log", fmt.Sprintf("%d requests, %d lines each", front.LogRequests, front.LogLines), "What the front remembers, " +
			fmt.Sprintf("%d kB together; lines over %d bytes are cut. This page shows the latest %d requests.", front.LogBytes>>10, front.LineBytes, l.Latest)},
		{"News", fmt.Sprintf("%v, %v of a run", front.ChangesEvery, crowd.NewsEvery), "The page hears at most so often that something has changed."},
		{"Guesses", fmt.Sprint(guessLimit), "So many are remembered, for all pages together."},
	}
}
