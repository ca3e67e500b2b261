package redisstore

import (
	"sync/atomic"
	"time"
)

// clocks know, of the server that has a bucket, by how much its clock is ahead
// of this process's at least. So a step can say until when on the server's
// clock it may still run, and a caller who gave up knows that it will not
// (R15).
//
// An answer was made after the step was sent and before it came back; that
// bounds the difference from above and below. The lower bound is the safe one:
// with it a step is refused too early rather than run too late. The greatest
// one is the best, until an answer contradicts it: the clock was set back, or
// another server has taken over.
type clocks struct {
	base  time.Time // which the monotonic clock of this process counts from
	ahead [buckets]atomic.Int64
}

func newClocks() *clocks { return &clocks{base: time.Now()} }

// here is a time on this process's clock, in microseconds.
func (c *clocks) here(t time.Time) int64 { return t.Sub(c.base).Microseconds() }

// learn takes up that the server's clock stood at server while a step was out.
func (c *clocks) learn(bucket int, sent, received time.Time, server int64) {
	least, most := server-c.here(received), server-c.here(sent)
	if known := c.ahead[bucket].Load(); known == 0 || least > known || most < known {
		c.ahead[bucket].Store(least)
	}
}

// there is t on the server's clock, or earlier.
func (c *clocks) there(bucket int, t time.Time) int64 {
	return c.here(t) + c.ahead[bucket].Load()
}
