package front

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/idempotencykey"
)

const (
	// LogRequests is how many requests the log remembers.
	LogRequests = 100
	// LogLines is how many lines it remembers of each.
	LogLines = 40
	// diedWithin is how long after its connection broke a request is told that
	// the process behind it has ended: the broken connection is seen first.
	diedWithin = 2 * time.Second
	// keyDigest is how many bytes of a key's digest are shown, as many as in
	// the log lines of semelhttp.
	keyDigest = 6
)

// Entry is one request as the front saw it, with what the processes behind it
// logged about it.
type Entry struct {
	ID       int64         `json:"id"`
	Time     time.Time     `json:"time"`
	Door     payments.Door `json:"door,omitempty"` // of payments only
	Customer string        `json:"customer"`
	// Order is the order's name, if the client sent one.
	Order string `json:"order,omitempty"`
	// Key is the beginning of the key's SHA-256, in hexadecimal: enough to
	// see which requests carry the same one.
	Key    string         `json:"key,omitempty"`
	Method string         `json:"method"`
	Path   string         `json:"path"`
	Fault  payments.Fault `json:"fault,omitempty"`
	// Status is what the client was answered: zero while it waits, and also
	// when the connection was closed without an answer.
	Status int `json:"status"`
	// Outcome is what Semel said: the header Semel-Outcome.
	Outcome string `json:"outcome,omitempty"`
	// Milliseconds is how long it took, and Ended whether that is final.
	Milliseconds int64    `json:"ms"`
	Ended        bool     `json:"ended"`
	Lines        []string `json:"lines"`

	// noted is the number of its order in the order book, or zero.
	noted int64
	// passed says that the service has it, broke when the connection to
	// that one broke, if it did, and died that its end has been told.
	passed bool
	broke  time.Time
	died   bool
	// size is how long it is as JSON, about.
	size int
}

// Log remembers the latest requests, but those of [payments.Crowd], and of long
// ones the beginning. The zero value is ready.
type Log struct {
	mu      sync.Mutex
	last    int64
	entries []*Entry // oldest first; they are changed under mu only
	bytes   int      // the sizes of entries together
	bell    bell
}

// begin notes that r has arrived. The entry is the caller's own until end.
func (l *Log) begin(r *http.Request) *Entry {
	e := &Entry{
		Time:     time.Now(),
		Customer: cut(payments.CustomerOf(r)),
		Order:    cut(r.Header.Get(payments.HeaderOrder)),
		Key:      keyShown(r),
		Method:   cut(r.Method),
		Path:     cut(r.URL.Path),
	}
	if e.Customer == payments.Crowd {
		return e // its number is zero, and nothing is remembered of that
	}
	defer l.bell.ring()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.ID = l.last
	kept := *e
	kept.size = len(payments.Marshal(kept)) + laterBytes
	l.entries = append(l.entries, &kept)
	l.bytes += kept.size
	l.fit()
	return e
}

// note shows what is known of the request so far.
func (l *Log) note(e *Entry) {
	if e.ID == 0 {
		return
	}
	defer l.bell.ring()
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.find(e.ID); kept != nil {
		e.Lines, e.passed, e.died, e.size = kept.Lines, kept.passed, kept.died, kept.size
		*kept = *e
	}
}

// end notes what became of the request.
func (l *Log) end(e *Entry) {
	e.Milliseconds = time.Since(e.Time).Milliseconds()
	e.Ended = true
	l.note(e)
}

// Line adds a line that a process logged to the request it is about. Lines are
// JSON with the request's number as the member "request"; others are no
// request's and are dropped here.
func (l *Log) Line(line string) {
	var about struct {
		Request string `json:"request"`
	}
	if json.Unmarshal([]byte(line), &about) != nil {
		return
	}
	id, err := strconv.ParseInt(about.Request, 10, 64)
	if err != nil || id == 0 {
		return
	}
	defer l.bell.ring()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(id, line)
}

// add adds a line to a request, under mu.
func (l *Log) add(id int64, line string) {
	e := l.find(id)
	if e == nil || len(e.Lines) == LogLines {
		return
	}
	line = cutLine(id, line)
	e.Lines = append(e.Lines, line)
	size := len(payments.Marshal(line))
	e.size += size
	l.bytes += size
	l.fit()
}

// tell adds a line of the front's own to a request.
func (l *Log) tell(e *Entry, msg string, attrs ...slog.Attr) {
	if e.ID != 0 {
		l.Line(lineOf("front", e.ID, msg, attrs...))
	}
}

// connecting returns dial, and notes of the request that it dials for that the
// service has it from then on. One that still waits for a connection outlives
// the service.
func (l *Log) connecting(dial DialFunc) DialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if e, ok := ctx.Value(entryKey{}).(*Entry); ok && err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			if kept := l.find(e.ID); kept != nil {
				kept.passed = true
			}
		}
		return conn, err
	}
}

// Died adds to each request that a process was busy with, or whose connection
// to it has just broken, the line that it ended.
func (l *Log) Died(process string, pid int, how string) {
	defer l.bell.ring()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		struck := e.passed && !e.Ended || time.Since(e.broke) < diedWithin
		if !struck || e.died {
			continue
		}
		e.died = true
		l.add(e.ID, lineOf("supervisor", e.ID, payments.LineEnded,
			slog.String("which", process), slog.Int("pid", pid), slog.String("how", how)))
	}
}

// lineOf writes a line as the processes behind write theirs.
func lineOf(process string, id int64, msg string, attrs ...slog.Attr) string {
	var b bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&b, nil))
	attrs = append([]slog.Attr{slog.String("process", process), slog.String("request", strconv.FormatInt(id, 10))}, attrs...)
	logger.LogAttrs(context.Background(), slog.LevelInfo, msg, attrs...) //nolint:sloglint // the callers' messages are constants
	return string(bytes.TrimSpace(b.Bytes()))
}

// find returns the entry of that number, or nil if it is forgotten.
func (l *Log) find(id int64) *Entry {
	if len(l.entries) == 0 {
		return nil
	}
	i := id - l.entries[0].ID
	if i < 0 || i >= int64(len(l.entries)) {
		return nil
	}
	return l.entries[i]
}

// Entries returns what is remembered, oldest first.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Entry, len(l.entries))
	for i, e := range l.entries {
		out[i] = *e
		out[i].Lines = append([]string{}, e.Lines...)
	}
	return out
}

// keyShown returns the beginning of the key's digest: keys may be personal, so
// no log shows one.
func keyShown(r *http.Request) string {
	key, err := idempotencykey.Parse(r.Header.Values(payments.HeaderKey), false)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:keyDigest])
}
