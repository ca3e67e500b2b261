package demo

import (
	"net"
	"net/http"
	"strings"

	"github.com/semel-dev/semel/cmd/examples/payments"
)

// local refuses to show or set the demo under a name that is not this machine's
// own, where it is listened on for this machine alone: a page from elsewhere
// whose name was made to lead here still has that name (DNS rebinding). The
// doors are for everybody, under any name.
func local(addr net.Addr, next http.Handler) http.Handler {
	if at, ok := addr.(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		own := strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
		inside := r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/demo/") || strings.HasPrefix(r.URL.Path, "/shop/")
		if inside && !own {
			payments.NewProblem(http.StatusMisdirectedRequest, "host-unknown", "the demo listens on this machine alone and answers under its own names, such as localhost").Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}
