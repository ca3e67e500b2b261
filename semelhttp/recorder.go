package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// errDetached is what a handler gets that writes when nobody is there any
// more to write to.
var errDetached = errors.New("semelhttp: the reply has ended, or the client was answered at the deadline")

// recorder is the http.ResponseWriter of a protected handler. It keeps the
// reply until it has been saved. It has no Unwrap, which would be a way around
// it, and no Hijack, which would leave nothing to save.
//
// The client's ResponseWriter is touched under mu only, and only while the
// recorder is attached: once the client has been answered at the deadline, a
// handler that still runs writes into the record alone.
type recorder struct {
	p      *protected
	to     http.ResponseWriter
	ctx    context.Context //nolint:containedctx // of the attempt, for MarkReplyStarted.
	before http.Header     // as the handler received it
	header http.Header     // the handler's own

	mu       sync.Mutex
	detached bool // the client has been answered
	closed   bool // the handler has returned
	started  bool // bytes of the reply have gone out

	status   int // zero: not written yet
	changed  http.Header
	removed  []string
	declared int64 // the handler's Content-Length, or -1
	written  int64
	body     []byte
	taken    int64    // bytes of the budget
	rest     *os.File // what came after body
	lost     error    // why rest could not be written: the reply cannot be sent
	trailers http.Header

	small  [512]byte // a body that fits has no allocation of its own
	values [3]string // the same for the headers that are added
}

var (
	_ http.ResponseWriter = (*recorder)(nil)
	_ http.Flusher        = (*recorder)(nil)
	_ io.ReaderFrom       = (*recorder)(nil)
	_ io.StringWriter     = (*recorder)(nil)
)

func (r *recorder) init(p *protected, to http.ResponseWriter) {
	r.p, r.to, r.declared, r.body = p, to, -1, r.small[:0]
	outside := to.Header()
	if len(outside) == 0 {
		r.header = make(http.Header)
		return
	}
	r.before, r.header = maps.Clone(outside), outside.Clone()
}

// Header returns the handler's header: what the layers outside have set, to
// change as it likes. What it takes away is gone from the first reply only: a
// replay has what those layers set then (R26).
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader fixes status and header. An informational status goes out at
// once and is no part of the reply. One that is not of three digits panics, as
// with net/http: here, and not when the reply is sent, after the work has ended.
func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed || r.status != 0:
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %d", status)) //nolint:forbidigo // as net/http.
	case status < 200 && status != http.StatusSwitchingProtocols:
		r.inform(status)
	default:
		r.fix(status)
	}
}

// inform sends an informational reply, with the header as it is now.
func (r *recorder) inform(status int) {
	if r.detached {
		return
	}
	outside := r.to.Header()
	clear(outside)
	maps.Copy(outside, r.header)
	r.to.WriteHeader(status)
	clear(outside)
	maps.Copy(outside, r.before)
}

// fix takes the header as it is now: what the handler does to it later is not
// sent, as with net/http.
func (r *recorder) fix(status int) {
	r.status = status
	r.changed, r.removed = changes(r.before, r.header)
	if said := r.changed["Content-Length"]; len(said) > 0 {
		if length, err := strconv.ParseInt(said[0], 10, 64); err == nil && length >= 0 {
			r.declared = length
		}
	}
}

// Write adds to the body.
func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(len(b)); err != nil {
		return 0, err
	}
	if !r.fits(len(b)) {
		return r.pass(b)
	}
	r.body = append(r.body, b...)
	return len(b), nil
}

// WriteString adds to the body.
func (r *recorder) WriteString(s string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(len(s)); err != nil {
		return 0, err
	}
	if !r.fits(len(s)) {
		return r.pass([]byte(s))
	}
	r.body = append(r.body, s...)
	return len(s), nil
}

var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// ReadFrom adds all of src to the body.
func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	buffer := copyBuffers.Get()
	defer copyBuffers.Put(buffer)
	space, _ := buffer.(*[32 << 10]byte)
	return io.CopyBuffer(struct{ io.Writer }{r}, struct{ io.Reader }{src}, space[:])
}

// admit says whether n more bytes may be written, with net/http's own errors.
func (r *recorder) admit(n int) error {
	if r.closed || r.detached && r.started {
		return errDetached
	}
	if r.status == 0 {
		r.fix(http.StatusOK)
	}
	switch {
	case n == 0:
		return nil
	case !bodyAllowed(r.status):
		return http.ErrBodyNotAllowed
	case r.declared >= 0 && r.written+int64(n) > r.declared:
		return http.ErrContentLength
	}
	r.written += int64(n)
	return nil
}

// fits makes room for n bytes in memory, if they may be kept there.
func (r *recorder) fits(n int) bool {
	need := len(r.body) + n
	limit := r.p.route.MaxReplyBody
	if r.started || r.rest != nil || r.lost != nil || int64(need) > limit {
		return false
	}
	if need <= cap(r.body) {
		return true
	}
	grown := max(int64(need), min(2*int64(cap(r.body)), limit))
	if !r.p.mw.budget.take(grown - int64(cap(r.body))) {
		return false
	}
	r.taken += grown - int64(cap(r.body))
	r.body = append(make([]byte, 0, grown), r.body...)
	return true
}

// pass hands on what is not kept in memory: to the client, if it is being sent
// already, else to a temporary file until the operation is saved. That there is
// no room for the reply is no fault of the work, which goes on to its end: the
// operation is done then, and only its reply is not to be had.
func (r *recorder) pass(b []byte) (int, error) {
	if r.started {
		return r.to.Write(b)
	}
	if r.rest == nil && r.lost == nil {
		r.rest, r.lost = os.CreateTemp("", "semel-reply-*")
		if r.lost == nil {
			os.Remove(r.rest.Name()) // on most systems: then nothing is left when the process dies
		}
	}
	if r.lost == nil {
		_, r.lost = r.rest.Write(b)
	}
	return len(b), nil
}

// Flush is FlushError without its error.
func (r *recorder) Flush() { r.FlushError() } //nolint:errcheck // http.Flusher has no error.

// FlushError sends what there is, after the record says that a reply has
// started; from then on the handler writes to the client (R14). In joined and
// atomic mode it does nothing: what has not been committed is not sent.
func (r *recorder) FlushError() error {
	if r.p.route.inTx() {
		return nil
	}
	if err := r.sendable(); err != nil {
		return err
	}
	if err := semel.MarkReplyStarted(r.ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.detached {
		return errDetached
	}
	if r.status == 0 {
		r.fix(http.StatusOK)
	}
	if !r.started {
		r.started = true
		r.sendHead(r.p.expected(r.status))
		if err := r.sendBody(); err != nil {
			return err
		}
	}
	return http.NewResponseController(r.to).Flush()
}

// sendable says why what has been written cannot be sent now.
func (r *recorder) sendable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.detached {
		return errDetached
	}
	return r.lost
}

// SetWriteDeadline sets the deadline of writing to the client.
func (r *recorder) SetWriteDeadline(deadline time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.detached {
		return errDetached
	}
	return http.NewResponseController(r.to).SetWriteDeadline(deadline)
}

// SetReadDeadline does nothing: the body has been read.
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex does nothing: the body has been read.
func (r *recorder) EnableFullDuplex() error { return nil }

// close ends the reply, because the handler has returned.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.fix(http.StatusOK)
	}
	r.closed = true
	r.trailers = trailers(r.header, r.changed)
	r.sniff()
}

// sniff names the type of a body whose handler names none, as net/http would
// when it sends it, so that a replay has the same.
func (r *recorder) sniff() {
	_, typed := r.sent("Content-Type")
	coding, _ := r.sent("Content-Encoding")
	if typed || strings.Join(coding, "") != "" || r.started || len(r.body) == 0 {
		return
	}
	r.values[2] = http.DetectContentType(r.body)
	r.changed["Content-Type"] = r.values[2:3:3]
}

// sent returns what the first client gets of a field.
func (r *recorder) sent(name string) (values []string, ok bool) {
	if values, ok = r.changed[name]; ok || slices.Contains(r.removed, name) {
		return values, ok
	}
	values, ok = r.before[name]
	return values, ok
}

// detach leaves a handler that still runs to itself, and reports whether bytes
// of its reply have gone out.
func (r *recorder) detach() (started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detached = true
	return r.started
}

// whole reports whether the reply has all that its header promises.
func (r *recorder) whole() bool {
	return r.declared < 0 || !bodyAllowed(r.status) || r.declared == r.written
}

// hasTrailers reports whether anything goes out after the body.
func (r *recorder) hasTrailers() bool {
	return len(r.trailers) > 0 || len(r.changed["Trailer"]) > 0
}

// canBeKept reports whether the reply can be replayed.
func (r *recorder) canBeKept() bool {
	return !r.started && r.rest == nil && r.lost == nil && !r.hasTrailers()
}

// lengthKnown reports whether a Content-Length is to be added. With trailers,
// or a transfer coding of the handler's choice, HTTP/1.1 forbids it.
func (r *recorder) lengthKnown() bool {
	return r.closed && r.declared < 0 && bodyAllowed(r.status) && !r.hasTrailers() && r.changed["Transfer-Encoding"] == nil
}

// send sends a reply that has ended and was not started before.
func (r *recorder) send(outcome string) error {
	r.sendHead(outcome)
	return r.sendBody()
}

// sendHead writes status and header, with the length wherever it is known.
func (r *recorder) sendHead(outcome string) {
	h := r.to.Header()
	for _, name := range r.removed {
		delete(h, name)
	}
	maps.Copy(h, r.changed)
	delete(h, headerReplayed)
	r.values[0] = outcome
	h[headerOutcome] = r.values[0:1:1]
	if r.lengthKnown() {
		r.values[1] = strconv.FormatInt(r.written, 10)
		h["Content-Length"] = r.values[1:2:2]
	}
	r.to.WriteHeader(r.status)
}

// sendBody writes what has been kept.
func (r *recorder) sendBody() error {
	if len(r.body) > 0 {
		if _, err := r.to.Write(r.body); err != nil {
			return err
		}
	}
	if r.rest == nil {
		return nil
	}
	if _, err := r.rest.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(r.to, r.rest)
	return err
}

// sendTrailers sets what goes out after the body, at the end of the request.
func (r *recorder) sendTrailers() { maps.Copy(r.to.Header(), r.trailers) }

// recycle lets the snapshot be used again, once it is sent and saved. After a
// fault a store may not be done with it.
func (r *recorder) recycle() {
	if r.changed != nil {
		clear(r.changed)
		headerMaps.Put(r.changed)
	}
}

// free gives memory, budget and file back.
func (r *recorder) free() {
	r.p.mw.budget.give(r.taken)
	if r.rest != nil {
		r.rest.Close()
		os.Remove(r.rest.Name()) // on the others
	}
}
