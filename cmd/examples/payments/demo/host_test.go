package demo

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestADemoForThisMachineAnswersUnderItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	loopback, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}, &net.TCPAddr{IP: net.IPv4zero, Port: 8420}
	for _, c := range []struct {
		at   net.Addr
		host string
		want int
	}{
		{loopback, "127.0.0.1:8420", http.StatusOK},
		{loopback, "localhost:8420", http.StatusOK},
		{loopback, "LOCALHOST", http.StatusOK},
		{loopback, "[::1]:8420", http.StatusOK},
		{loopback, "[::1]", http.StatusOK},
		{loopback, "rebound.example:8420", http.StatusMisdirectedRequest},
		{loopback, "localhost.example", http.StatusMisdirectedRequest},
		{loopback, "192.0.2.1:8420", http.StatusMisdirectedRequest},
		{everywhere, "shop.example:8420", http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, "/demo/log", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		local(c.at, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		assert.Equal(t, w.Code, c.want, "%s at %v", c.host, c.at)
	}
}

func TestTheDoorsAnswerUnderAnyName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/payments":        http.StatusOK,
		"/unsafe/payments": http.StatusOK,
		"/naive/payments":  http.StatusOK,
		"/metrics":         http.StatusOK,
		"/":                http.StatusMisdirectedRequest,
		"/shop/live":       http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "shop.example"
		w := httptest.NewRecorder()
		local(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		assert.Equal(t, w.Code, want, path)
	}
}
