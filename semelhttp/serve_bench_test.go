//go:build !race

package semelhttp_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// BenchmarkServe compares a handler with itself behind the middleware on the
// memory store: 64 connections that are kept, a new key for each request. The
// two take turns, a round each, so that what else the machine does meets both;
// the ratio is that of their throughputs, the load's own cost included.
func BenchmarkServe(b *testing.B) {
	const connections = 64
	s := newService(b, settings{})
	load := func(h http.Handler) func() time.Duration {
		srv := httptest.NewServer(h)
		b.Cleanup(srv.Close)
		var clients []*rawClient
		for i := range connections {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String()) //nolint:noctx // loopback.
			assert.NoError(b, err)
			b.Cleanup(func() { conn.Close() })
			c := newRawClient(conn)
			c.n = int64(i) * 10_000_000 // keys of its own
			clients = append(clients, c)
		}
		return func() time.Duration { return round(b, clients) }
	}
	bare, protected := load(http.HandlerFunc(s.created)), load(s.protect(b, semelhttp.Route{}, s.created))
	bare()
	protected()
	var without, with time.Duration
	rounds := 0
	for b.Loop() {
		without += bare()
		with += protected()
		rounds++
	}
	requests := float64(rounds * connections * roundLength)
	b.ReportMetric(float64(without.Microseconds())/requests, "bare-µs/request")
	b.ReportMetric(float64(with.Microseconds())/requests, "protected-µs/request")
	b.ReportMetric(without.Seconds()/with.Seconds(), "ratio")
}

// roundLength is how many requests each connection sends in a round.
const roundLength = 50

func round(b *testing.B, clients []*rawClient) time.Duration {
	b.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for range roundLength {
				if err := c.post(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}
