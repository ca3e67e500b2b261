package retry

import (
	"sync"
	"time"
)

// The bounds of a Budget.
const (
	// Ratio is how many retries there may be for each request.
	Ratio = 0.2
	// Reserve is how many retries are always allowed, so that a caller alone
	// can retry at all.
	Reserve = 30
	// Window is the time over which both are counted.
	Window = time.Minute
)

// slots count by the second. There is one more than the window has, since the
// latest is not over.
const slots = int64(Window/time.Second) + 1

// Budget counts the requests and retries of all callers of one host. Of any
// Window of time it allows Ratio times as many retries as there were requests, and
// never fewer than Reserve. They come from a token bucket that holds Reserve and
// is filled over the whole window, so that a crowd does not use them up in the
// first moment of an outage. A retry that was answered is given back: the host is
// up. The zero Budget is ready, and safe for concurrent use.
type Budget struct {
	mu       sync.Mutex
	start    time.Time
	filled   time.Time // when the bucket was last filled
	tokens   float64
	slots    [slots]slot
	requests int
	retries  int
}

// slot is what happened in one second.
type slot struct {
	number            int64
	requests, retries int
}

// Request counts a request that is sent for the first time.
func (b *Budget) Request() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now().requests++
	b.requests++
}

// Retry reports whether a request may be sent again now, and counts it if so.
func (b *Budget) Retry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.tokens < 1 || b.retries >= b.allowed() {
		return false
	}
	b.tokens--
	now.retries++
	b.retries++
	return true
}

// allowed is how many retries the window may have.
func (b *Budget) allowed() int { return max(Reserve, int(Ratio*float64(b.requests))) }

// Answered gives back a retry that Retry allowed, after the host has answered it.
func (b *Budget) Answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.now().number
	for n := last; n > last-slots && n >= 0; n-- {
		if s := &b.slots[n%slots]; s.number == n && s.retries > 0 {
			s.retries--
			b.retries--
			b.tokens = min(b.tokens+1, Reserve)
			return
		}
	}
}

// now forgets what is past the window, fills the bucket, and returns the present
// slot. It counts on the monotonic clock: a step of the wall clock changes nothing.
func (b *Budget) now() *slot {
	now := time.Now()
	if b.start.IsZero() {
		b.start, b.filled, b.tokens = now, now, Reserve
	}
	number := int64(now.Sub(b.start) / time.Second)
	for i := range b.slots {
		if s := &b.slots[i]; s.number <= number-slots {
			b.requests -= s.requests
			b.retries -= s.retries
			*s = slot{}
		}
	}
	b.tokens += float64(b.allowed()) * float64(now.Sub(b.filled)) / float64(Window)
	b.tokens = min(b.tokens, Reserve)
	b.filled = now
	s := &b.slots[number%slots]
	s.number = number
	return s
}
