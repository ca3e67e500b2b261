package shop

import (
	"fmt"
	"regexp"
	"time"
)

// Measures of a diagram. Lanes stand at shares of its width, in percent; all
// else is in CSS pixels, so that texts are as large on a phone as on a wide
// screen.
const (
	laneFirst = 10
	laneGap   = 27
	arrowY    = 22
	markY     = 16
	besideX   = 17 // from the middle of a mark to its text
	overX     = 8  // from a lane to a text that begins there
)

// drawing is a story as the page shows it: a list of hops, each a piece of the
// picture with its log line.
type drawing struct {
	// Title says what is drawn.
	Title string
	// Store is what the lane of the store is called.
	Store string
	Hops  []drawnHop
	// Hidden is how many hops there are that are not shown yet.
	Hidden int
}

// drawnHop is a hop with its place in time.
type drawnHop struct {
	hop
	// Since is the time since the first hop.
	Since time.Duration
	// Same says that it has the log line of the hop before.
	Same bool
}

// drawn draws hops, of which the first count are shown. What is not in the store
// that the lane is called after says where it is.
func drawn(t till, storeName string, hops []hop, shown int) drawing {
	d := drawing{Title: t.Title, Store: storeName, Hidden: max(0, len(hops)-shown)}
	for i, h := range hops[:min(shown, len(hops))] {
		same := i > 0 && h.Line != "" && h.Line == hops[i-1].Line
		if h.Store != "" && h.Store != storeName {
			h.Text += " (" + h.Store + ")"
		}
		d.Hops = append(d.Hops, drawnHop{hop: h, Since: h.At.Sub(hops[0].At), Same: same})
	}
	return d
}

// Lanes are all lanes, for their names.
func (d drawing) Lanes() []lane { return []lane{browser, service, bank, store} }

// Name is what the picture calls a lane.
func (d drawing) Name(l lane) string {
	if l == store {
		return d.Store
	}
	return l.String()
}

// X is where the lane stands, in percent.
func (l lane) X() int { return laneFirst + int(l)*laneGap }

// Send reports whether the hop begins a request.
func (h drawnHop) Send() bool { return h.From == browser && h.To == service }

// Y is the line on which the hop is drawn.
func (h drawnHop) Y() int {
	if h.From == h.To {
		return markY
	}
	return arrowY
}

// X1 and X2 are its ends.
func (h drawnHop) X1() int { return h.From.X() }

// X2 is where its arrow points.
func (h drawnHop) X2() int { return h.To.X() }

// Cut is where a lost message ends.
func (h drawnHop) Cut() float64 { return float64(h.X1()+h.X2()) / 2 }

// Head is the arrow's head, as the points of a polygon whose tip is at zero.
func (h drawnHop) Head() string {
	if h.To < h.From {
		return "0,0 8,-4 8,4"
	}
	return "0,0 -8,-4 -8,4"
}

// Place places the hop's text. It has the most room where it stands: from the
// browser's lane on, before the store's, and otherwise in the middle.
func (h drawnHop) Place() place {
	switch {
	case h.From == h.To && h.From > service:
		return place{Anchor: "end", X: h.X1(), DX: -besideX, Y: h.Y() + 4}
	case h.From == h.To:
		return place{Anchor: "start", X: h.X1(), DX: besideX, Y: h.Y() + 4}
	case min(h.From, h.To) == browser:
		return place{Anchor: "start", X: browser.X(), DX: overX, Y: h.Y() - 7}
	case max(h.From, h.To) == store:
		return place{Anchor: "end", X: store.X(), DX: -overX, Y: h.Y() - 7}
	default:
		return place{Anchor: "middle", X: int(h.Cut()), Y: h.Y() - 7}
	}
}

// place is where a text stands: at X percent and DX pixels.
type place struct {
	Anchor   string
	X, DX, Y int
}

// Sentence is the hop in words.
func (h drawnHop) Sentence() string { return h.sentence() }

// Offset is the time since the first hop.
func (h drawnHop) Offset() string { return fmt.Sprintf("+%.3f s", h.Since.Seconds()) }

// longID is an id that has more digits than anybody compares.
var longID = regexp.MustCompile(`\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// Log is the log line, with long ids cut as the drawing cuts them: the whole
// line is in the list of requests.
func (h drawnHop) Log() string {
	if h.Same {
		return "the same log line"
	}
	return longID.ReplaceAllString(plain(h.Line), "$1…")
}
