package fingerprint

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// manyParams is n parameters, no two of one name.
func manyParams(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(";p" + strconv.Itoa(i) + "=v")
	}
	return b.String()
}

// Each parameter is compared with all before it, so that how many are read is
// what the reading costs.
func TestOfATypeAFewParametersAreRead(t *testing.T) {
	t.Parallel()
	_, params, ok := parseTyped("text/plain"+manyParams(maxParams), nil)
	assert.True(t, ok, "as many as are read")
	assert.Equal(t, len(params), maxParams)
	for _, n := range []int{maxParams + 1, 1000} {
		_, params, ok = parseTyped("text/plain"+manyParams(n), nil)
		assert.True(t, !ok, "%d parameters are too many to be typed", n)
		assert.Equal(t, len(params), maxParams, "of %d parameters", n)
	}
}

// What a client sends is read before anything is claimed, so that no request may
// cost more than its size. Memory is counted, and not time.
func TestARequestCostsAsMuchAsItIsLong(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates.
	members := func(n int, name func(i int) string) string {
		var b strings.Builder
		for i := n; i > 0; i-- {
			b.WriteString(`"` + name(i) + `":1,`)
		}
		return "{" + b.String() + `"":1}`
	}
	type shape struct {
		media string
		body  func(n int) string
	}
	const form = "multipart/form-data; boundary=b"
	for name, s := range map[string]shape{
		"members in reverse order": {"application/json", func(n int) string {
			return members(n/8, func(i int) string { return strconv.Itoa(1_000_000 + i) })
		}},
		"members with a long beginning in common": {"application/json", func(n int) string {
			return members(n/1024, func(i int) string { return strings.Repeat("A", 1000) + strconv.Itoa(1_000_000+i) })
		}},
		"objects in objects, each out of order": {"application/json", func(n int) string {
			return strings.Repeat(`{"b":1,"a":`, maxDepth-1) + `"` + strings.Repeat("x", n) + `"` + strings.Repeat("}", maxDepth-1)
		}},
		"brackets without end": {"application/json", func(n int) string { return strings.Repeat("[", n) }},
		"escapes":              {"application/json", func(n int) string { return `"` + strings.Repeat(`\u0061`, n/6) + `"` }},
		"empty parts":          {form, func(n int) string { return "--b" + strings.Repeat("\r\n\r\n\r\n--b", n/9) + "--" }},
		"headers of one part":  {form, func(n int) string { return "--b\r\n" + strings.Repeat("A: 1\r\n", n/6) + "\r\n\r\n--b--" }},
		"headers of many parts": {form, func(n int) string {
			return "--b" + strings.Repeat("\r\nContent-Type: a/b\r\n\r\n\r\n--b", n/29) + "--"
		}},
		"parameters of one part": {form, func(n int) string {
			return "--b\r\nContent-Disposition: form-data" + manyParams(n/8) + "\r\n\r\n\r\n--b--"
		}},
		"almost boundaries": {form, func(n int) string { return "--b\r\n\r\n" + strings.Repeat("\r\n--", n/4) + "\r\n--b--" }},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // see above.
			const size = 1 << 16
			count, bytes := allocated(t, s.media, s.body(size))
			countTwice, bytesTwice := allocated(t, s.media, s.body(2*size))
			assert.True(t, countTwice <= 3*count, "got %d allocations, %d for twice as much", count, countTwice)
			assert.True(t, bytesTwice <= 3*bytes, "got %d bytes, %d for twice as much", bytes, bytesTwice)
		})
	}
}

// allocated is what the fingerprint of a body takes when no pool has anything.
func allocated(t *testing.T, media, body string) (count, bytes uint64) {
	t.Helper()
	p, err := New(Config{})
	assert.NoError(t, err)
	r := Request{Method: "POST", Target: "/", Header: map[string][]string{"Content-Type": {media}}, Body: []byte(body)}
	for range 2 { // a pool keeps for one collection what it had
		runtime.GC()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.Of(r)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}
