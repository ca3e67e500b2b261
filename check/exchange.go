package check

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Exchange is one request and what came back, in the order of sending.
type Exchange struct {
	// After is when it was sent, from the start of the case; Took is how long the
	// reply took.
	After, Took time.Duration
	Method, URL string
	Header      http.Header
	Body        []byte
	// Status is 0 when no reply was read; Err then says why.
	Status      int
	ReplyHeader http.Header
	ReplyBody   []byte
	Err         string
	// Note tells what was done on the way, such as a reply that was cut.
	Note string
	// AtOnce says that it was sent together with the exchange before it.
	AtOnce bool
}

func (x Exchange) succeeded() bool { return x.Status >= 200 && x.Status < 300 }

func (x Exchange) refused() bool { return x.Status >= 400 && x.Status < 500 }

// conflicts reports whether the reply says that the key is in use just now.
func (x Exchange) conflicts() bool {
	return x.Status == http.StatusConflict || x.Status == http.StatusLocked || x.Status == http.StatusTooEarly
}

// turnedAway reports whether a limit or an authorization that has run out
// refused the request, so that nobody looked at its key.
func (x Exchange) turnedAway() bool {
	return x.Status == http.StatusTooManyRequests || x.Status == http.StatusUnauthorized
}

// result tells in a few words what came back.
func (x Exchange) result() string {
	if x.Status == 0 {
		return "no reply: " + x.Err
	}
	const enough = 200
	body := strings.TrimSpace(string(x.ReplyBody))
	if len(body) > enough {
		body = body[:enough] + "…"
	}
	return fmt.Sprintf("%d %s %s", x.Status, http.StatusText(x.Status), body)
}
