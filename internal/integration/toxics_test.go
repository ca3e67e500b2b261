package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/semel-dev/semel/internal/assert"
)

// cable is a way to a server that can be made bad. See [toxic].
type cable struct {
	proxy *toxiproxy.Proxy
	to    string
}

// newCable returns a good way to the server at an address.
func newCable(t testing.TB, to string) *cable {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "network", "127.0.0.1:0", to)
	assert.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	return &cable{proxy: p, to: to}
}

// through is a URL, or the name of a data source, that leads this way.
func (n *cable) through(address string) string {
	if n == nil {
		return address
	}
	return strings.Replace(address, n.to, n.proxy.Listen, 1)
}

// toxic is something that is bad about a cable, in one direction.
type toxic struct {
	Type       string           `json:"type"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

const (
	asking    = "upstream"
	answering = "downstream"
)

// cutAfter lets so many bytes more through on each connection, and then ends
// it.
func cutAfter(bytes int64, of string) toxic {
	return toxic{"limit_data", of, map[string]int64{"bytes": bytes}}
}

// reset ends each connection by a reset when something comes.
func reset(of string) toxic { return toxic{"reset_peer", of, map[string]int64{"timeout": 0}} }

// swallow takes everything and passes nothing on: the connection is half open.
func swallow(of string) toxic { return toxic{"timeout", of, map[string]int64{"timeout": 0}} }

// delay makes everything late by so many milliseconds.
func delay(ms int64, of string) toxic { return toxic{"latency", of, map[string]int64{"latency": ms}} }

// closeLate passes on that one side has closed so many milliseconds later.
func closeLate(ms int64, of string) toxic {
	return toxic{"slow_close", of, map[string]int64{"delay": ms}}
}

// spoil makes the cable bad. It may be called from any goroutine.
func (n *cable) spoil(t testing.TB, with ...toxic) {
	t.Helper()
	for _, w := range with {
		text, err := json.Marshal(w)
		if err == nil {
			_, err = n.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		}
		if err != nil {
			t.Errorf("%s %s: %v", w.Type, w.Stream, err)
		}
	}
}

// heal makes it good again. Connections that something was taken from are
// closed.
func (n *cable) heal() { n.proxy.Toxics.ResetToxics(context.Background()) }
