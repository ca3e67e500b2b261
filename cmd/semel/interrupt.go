package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the cause with which a signal ends the context of a command.
type interruption struct{ signal os.Signal }

// Error says which signal it was.
func (i *interruption) Error() string {
	return fmt.Sprintf("stopped by a signal (%v) before it was done", i.signal)
}

// Unwrap makes it an end that was asked for.
func (*interruption) Unwrap() error { return context.Canceled }

// unlessInterrupted returns err, or the signal if one has ended ctx: whatever
// was under way just then has failed of it.
func unlessInterrupted(ctx context.Context, err error) error {
	var cut *interruption
	if err != nil && errors.As(context.Cause(ctx), &cut) {
		return cut
	}
	return err
}

// untilInterrupted returns a context that ends with the first SIGINT or SIGTERM.
// The second one calls exit at once: both come through one channel, so there is
// no moment at which a signal is lost. stop gives the signals back.
func untilInterrupted(ctx context.Context, exit func(code int)) (until context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go listen(signals, func(s os.Signal) { cancel(&interruption{s}) }, exit)
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// listen takes two signals, or fewer if no more are to come.
func listen(signals <-chan os.Signal, first func(os.Signal), exit func(code int)) {
	s, ok := <-signals
	if !ok {
		return
	}
	first(s)
	if s, ok = <-signals; ok {
		exit(exitCode(s))
	}
}

// exitCode is what a shell reports of a program that a signal has ended.
func exitCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailed
}
