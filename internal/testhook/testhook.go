// Package testhook lets this module's tests move a store's clock. Nothing but
// tests fills these hooks, and nobody outside the module can.
package testhook

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"
)

// Hooks are the seams of a store. The zero value changes nothing.
type Hooks struct {
	// ClockOffset is added to the store's clock each time it is read.
	ClockOffset func() time.Duration
	// ClockShift is an SQL expression in microseconds, or the name of a value
	// in Redis, that is added to a server's clock where that is read, so that
	// time can pass while a statement waits there.
	ClockShift string
}

// Offset returns what to add to the store's clock now.
func (h Hooks) Offset() time.Duration {
	if h.ClockOffset == nil {
		return 0
	}
	return h.ClockOffset()
}

// Clock is an offset kept in a file, so that several processes on one store
// share it.
type Clock struct{ path string }

// NewClock returns the clock kept at path, which is created if it is missing.
// A child process opens the same path.
func NewClock(path string) (Clock, error) {
	c := Clock{path: path}
	if _, err := os.Stat(path); err == nil {
		return c, nil
	}
	return c, c.set(0)
}

// Advance moves the clock by d.
func (c Clock) Advance(d time.Duration) error {
	now, err := c.read()
	if err != nil {
		return err
	}
	return c.set(now + d)
}

// Hooks returns hooks that follow the clock.
func (c Clock) Hooks() Hooks {
	return Hooks{ClockOffset: func() time.Duration {
		d, _ := c.read() //nolint:errcheck // a test that removed the file has ended.
		return d
	}}
}

// set replaces the file in one step, so that no reader sees half a number.
func (c Clock) set(d time.Duration) error {
	next := fmt.Sprintf("%s.%d", c.path, os.Getpid())
	if err := os.WriteFile(next, binary.BigEndian.AppendUint64(nil, uint64(d)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.path)
}

func (c Clock) read() (time.Duration, error) {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("testhook: %s is no clock", c.path)
	}
	return time.Duration(binary.BigEndian.Uint64(b)), nil
}
