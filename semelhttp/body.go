package semelhttp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel/internal/httpfield"
)

// budget bounds the body bytes in memory over all requests (R33).
type budget struct {
	left atomic.Int64
}

// take reports whether n bytes could be had.
func (b *budget) take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

func (b *budget) give(n int64) { b.left.Add(n) }

// bodyBuffer is what a body gets before more is known to come. Most need no
// more, so these are used again.
type bodyBuffer [4 << 10]byte

var bodyBuffers = sync.Pool{New: func() any { return new(bodyBuffer) }}

// requestBody is a body that was read whole. What a handler may still hold of
// it when it has returned is closed, so that the buffer can be used again.
type requestBody struct {
	buffer *bodyBuffer // nil: no body
	taken  int64       // bytes of the budget

	mu     sync.Mutex
	data   []byte
	offset int
	closed bool
}

var _ io.ReadCloser = (*requestBody)(nil)

// Read returns what is left of the body.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(p) == 0:
		return 0, nil
	case b.offset == len(b.data):
		return 0, io.EOF
	}
	n := copy(p, b.data[b.offset:])
	b.offset += n
	return n, nil
}

// Close ends the reading for good.
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// free gives memory and budget back.
func (b *requestBody) free(from *budget) {
	from.give(b.taken)
	if b.buffer != nil {
		bodyBuffers.Put(b.buffer)
	}
}

// readBody reads the whole body, within the limit, the timeout and the budget,
// and says why not if it cannot.
func (x *exchange) readBody() *problem {
	r, limit := x.request, x.p.route.MaxRequestBody
	if r.ContentLength > limit {
		return x.tooLarge(limit)
	}
	if r.Body == nil || r.Body == http.NoBody {
		if r.ContentLength != 0 {
			return x.readOutside()
		}
		return nil
	}
	x.limitReading()
	if !x.takeForBody(min(int64(len(bodyBuffer{})), limit)) {
		return &problem{code: ProblemOverloaded}
	}
	x.body.buffer, _ = bodyBuffers.Get().(*bodyBuffer)
	data := x.body.buffer[:0]
	for {
		n, err := r.Body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return x.tooLarge(limit)
		case err == io.EOF: //nolint:errorlint // io.Reader returns EOF itself.
			if int64(len(data)) < r.ContentLength {
				// Somebody outside has read the break already: net/http
				// reports it once, and says EOF from then on.
				return x.unreadable(io.ErrUnexpectedEOF)
			}
			if r.ContentLength < 0 && len(data) == 0 && formWasRead(r) {
				return x.readOutside()
			}
			x.body.data = data
			return nil
		case err != nil:
			return x.unreadable(err)
		case len(data) == cap(data):
			grown := min(int64(2*cap(data))-1, limit) + 1 // one more shows that it is too large
			if !x.takeForBody(min(grown, limit) - int64(cap(data))) {
				return &problem{code: ProblemOverloaded}
			}
			data = append(make([]byte, 0, grown), data...)
		}
	}
}

func (x *exchange) takeForBody(n int64) bool {
	if !x.p.mw.budget.take(n) {
		return false
	}
	x.body.taken += n
	return true
}

func (x *exchange) tooLarge(limit int64) *problem {
	x.closeConnection()
	return &problem{code: ProblemBodyTooLarge, detail: fmt.Sprintf("The body may have at most %d bytes.", limit)}
}

func (x *exchange) unreadable(err error) *problem {
	x.closeConnection()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{code: ProblemBodyTimeout}
	case errors.As(err, &tooLarge): // a limit set outside this middleware
		return x.tooLarge(tooLarge.Limit)
	}
	return &problem{code: ProblemBodyIncomplete}
}

// formWasRead reports whether somebody outside has read the body as a form, as
// FormValue does. Of a body without a length nothing else would show it.
func formWasRead(r *http.Request) bool {
	if r.PostForm == nil || r.MultipartForm != nil {
		return r.MultipartForm != nil
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) //nolint:errcheck // net/http does not look either.
	return media == "application/x-www-form-urlencoded"
}

// readOutside refuses a request whose body is gone: it would pass for any other
// under its key.
func (x *exchange) readOutside() *problem {
	x.cause = errReadOutside
	return &problem{code: ProblemBodyIncomplete, detail: "The server has lost the body before it was compared."}
}

var errReadOutside = errors.New("semelhttp: a layer outside has read the body and not put it back")

// closeConnection tells an HTTP/1 client to stop sending.
func (x *exchange) closeConnection() {
	if x.request.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close")
	}
}

// limitReading sets the deadline of reading the body, which net/http lifts by
// itself once the body has been read. A server with a shorter ReadTimeout keeps
// that.
func (x *exchange) limitReading() {
	timeout := x.p.mw.cfg.BodyReadTimeout
	server, _ := x.request.Context().Value(http.ServerContextKey).(*http.Server)
	if server != nil && server.ReadTimeout > 0 && server.ReadTimeout < timeout {
		return
	}
	// What cannot set one, such as a test's recorder, reads without.
	http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(timeout)) //nolint:errcheck // see above.
}

// upgrades reports whether r asks for another protocol. The cleartext upgrade
// to HTTP/2 that some clients offer with every request is none: servers
// ignore it.
func upgrades(r *http.Request) bool {
	for protocol := range httpfield.Members(r.Header["Upgrade"]) {
		if protocol != "h2c" {
			return true
		}
	}
	return false
}
