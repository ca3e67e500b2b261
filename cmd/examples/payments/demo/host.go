package demo

import (
	"net"
	"net/http"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// local refuses requests under a name that is not this machine's own, where it
// is listened on for this machine alone: a page from elsewhere whose name was
// made to lead here still has that name (DNS rebinding).
func local(addr net.Addr, next http.Handler) http.Handler {
	if at, ok := addr.(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if !strings.EqualFold(host, "localhost") && !net.ParseIP(host).IsLoopback() {
			payments.NewProblem(http.StatusMisdirectedRequest, "host-unknown", "the demo listens on this machine alone and answers under its own names, such as localhost").Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
