package shop

import (
	"fmt"
	"time"
)

// Measures of a diagram, in its own units.
const (
	laneFirst  = 46
	laneGap    = 110
	laneLast   = 60 // to the right of the last, for the texts beside the bank
	drawWidth  = laneFirst + 3*laneGap + laneLast
	rowsBegin  = 34
	rowHeight  = 46
	headLength = 8
	logColumns = 68
)

// drawing is a story as the page shows it: as an SVG and as a list.
type drawing struct {
	// Name is the till's, for ids.
	Name string
	// Title says what is drawn.
	Title string
	Hops  []drawnHop
	// Hidden is how many hops there are that are not shown yet.
	Hidden int
}

// drawnHop is a hop with its place.
type drawnHop struct {
	hop
	// Row is its number, from zero, and Since the time since the first hop.
	Row   int
	Since time.Duration
}

// drawn places hops, of which the first count are shown.
func drawn(t till, hops []hop, shown int) drawing {
	d := drawing{Name: string(t.Door), Title: t.Title, Hidden: max(0, len(hops)-shown)}
	for i, h := range hops[:min(shown, len(hops))] {
		d.Hops = append(d.Hops, drawnHop{hop: h, Row: i, Since: h.At.Sub(hops[0].At)})
	}
	return d
}

// Width and Height are those of the picture.
func (d drawing) Width() int { return drawWidth }

// Height grows with the story.
func (d drawing) Height() int { return rowsBegin + max(1, len(d.Hops))*rowHeight }

// Lanes are the names and places of the lanes.
func (d drawing) Lanes() []drawnLane {
	out := make([]drawnLane, len(laneNames))
	for i, name := range laneNames {
		out[i] = drawnLane{Name: name, X: lane(i).x(), Height: d.Height()}
	}
	return out
}

// drawnLane is one lane of a picture.
type drawnLane struct {
	Name      string
	X, Height int
}

func (l lane) x() int { return laneFirst + int(l)*laneGap }

// Y is the line on which the hop is drawn.
func (h drawnHop) Y() int { return rowsBegin + h.Row*rowHeight + 20 }

// X1 and X2 are its ends.
func (h drawnHop) X1() int { return h.From.x() }

// X2 is where its arrow points.
func (h drawnHop) X2() int { return h.To.x() }

// Cut is where a lost message ends.
func (h drawnHop) Cut() int { return (h.X1() + h.X2()) / 2 }

// Head is the arrow's head, as the points of a polygon.
func (h drawnHop) Head() string {
	back := h.X2() - headLength
	if h.X2() < h.X1() {
		back = h.X2() + headLength
	}
	return fmt.Sprintf("%d,%d %d,%d %d,%d", h.X2(), h.Y(), back, h.Y()-4, back, h.Y()+4)
}

// TextX is where the text is centred, or begins beside a mark on a lane.
func (h drawnHop) TextX() int {
	if h.From == h.To {
		return h.X1() + 16
	}
	return h.Cut()
}

// TextY is the text's base line: over an arrow, higher over a cross, and beside
// a mark.
func (h drawnHop) TextY() int {
	switch {
	case h.From == h.To:
		return h.Y() + 4
	case h.Mark == markLost:
		return h.Y() - 9
	default:
		return h.Y() - 6
	}
}

// LogY is the base line of the log line under it.
func (h drawnHop) LogY() int {
	if h.From == h.To {
		return h.Y() + 21
	}
	return h.Y() + 15
}

// Sentence is the hop in words.
func (h drawnHop) Sentence() string { return h.sentence() }

// Offset is the time since the first hop.
func (h drawnHop) Offset() string { return fmt.Sprintf("+%.3f s", h.Since.Seconds()) }

// Log is the log line as far as there is room under the arrow.
func (h drawnHop) Log() string {
	text := []rune(plain(h.Line))
	if len(text) > logColumns {
		text = append(text[:logColumns-1], '…')
	}
	return string(text)
}

// Full is the whole log line.
func (h drawnHop) Full() string { return plain(h.Line) }
