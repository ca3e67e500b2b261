//go:build !race

// The race detector allocates too.

package semelhttp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/semelhttp"
)

// maxAllocations is the most that one POST of 200 bytes may allocate in the
// server process. The bare handler takes 26 of them.
const maxAllocations = 40

func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates.
	s := newService(t, settings{})
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":1}`)
	}
	bare := allocationsPerRequest(t, http.HandlerFunc(handler))
	protected := allocationsPerRequest(t, s.protect(t, semelhttp.Route{}, handler))
	t.Logf("allocations per request: bare %.1f, protected %.1f", bare, protected)
	whole := math.Floor(protected) // as testing.AllocsPerRun counts
	assert.True(t, whole <= maxAllocations, "got %.1f allocations, want at most %d", protected, maxAllocations)
}

// allocationsPerRequest counts over a real connection, with a client that
// allocates nothing itself.
func allocationsPerRequest(t testing.TB, h http.Handler) float64 {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String()) //nolint:noctx // loopback.
	assert.NoError(t, err)
	defer conn.Close()
	c := newRawClient(conn)
	const warm, counted = 200, 2000
	for range warm {
		assert.NoError(t, c.post())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range counted {
		if err := c.post(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / counted
}

// rawClient sends one request after the other, each under a new key, out of
// buffers of its own.
type rawClient struct {
	conn    net.Conn
	request []byte
	key     []byte // in request
	reader  *bufio.Reader
	n       int64
}

func newRawClient(conn net.Conn) *rawClient {
	body := bytes.Repeat([]byte("x"), 200-len(`{"note":""}`))
	head := "POST /orders HTTP/1.1\r\nHost: shop.test\r\nContent-Type: application/json\r\nIdempotency-Key: "
	c := &rawClient{conn: conn, reader: bufio.NewReader(conn)}
	c.request = fmt.Appendf(nil, "%s0000000000\r\nContent-Length: 200\r\n\r\n{\"note\":\"%s\"}", head, body)
	c.key = c.request[len(head) : len(head)+10]
	return c
}

var (
	lengthHeader = []byte("Content-Length: ")
	emptyLine    = []byte("\r\n")
)

func (c *rawClient) post() error {
	c.n++
	for i, n := len(c.key)-1, c.n; i >= 0; i, n = i-1, n/10 {
		c.key[i] = byte('0' + n%10)
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 201")):
			return fmt.Errorf("got %q", line)
		case bytes.HasPrefix(line, lengthHeader):
			length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):])))
			if err != nil {
				return err
			}
		case bytes.Equal(line, emptyLine):
			_, err := c.reader.Discard(length)
			return err
		}
	}
}
