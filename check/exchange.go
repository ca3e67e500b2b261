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

	redirect int // the redirection with which the API answers what it has done; 0 for none
}

// succeeded reports whether the reply says that the request was carried out. A
// redirection to what was made is such a reply where the API answers so; it is
// never followed.
func (x Exchange) succeeded() bool {
	return x.Status >= 200 && x.Status < 300 || x.Status != 0 && x.Status == x.redirect
}

// redirects reports whether a reply to a POST may mean that it was done, and that
// the result is elsewhere. 307 and 308 ask for the same request at another place.
func (x Exchange) redirects() bool {
	return x.Status == http.StatusSeeOther || x.Status == http.StatusFound || x.Status == http.StatusMovedPermanently
}

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
	says := fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status))
	if location := x.ReplyHeader.Get(locationLeaf); location != "" && x.Status >= 300 && x.Status < 400 {
		says += " to " + short([]byte(location))
	}
	if body := strings.TrimSpace(string(x.ReplyBody)); body != "" {
		says += " " + short([]byte(body))
	}
	return says
}
