package payments

import "net/http"

// Settles reports whether an answer of that status ends an order: it is paid or
// refused, and its client has nothing more to ask. No answer, which is status
// zero, settles nothing. Nor does a server's error, or one that only tells the
// client to come again: 408, 409, 425 and 429.
func Settles(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusOK && status < http.StatusInternalServerError
}
