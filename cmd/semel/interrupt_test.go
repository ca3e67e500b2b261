package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/semel-dev/semel/internal/assert"
)

func TestTheFirstSignalEndsTheCommandAndTheSecondTheProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signals []os.Signal
		first   os.Signal
		exit    int
	}{
		"no signal":              {nil, nil, 0},
		"one signal":             {[]os.Signal{syscall.SIGTERM}, syscall.SIGTERM, 0},
		"two in the same moment": {[]os.Signal{syscall.SIGTERM, syscall.SIGINT}, syscall.SIGTERM, 130},
		"two of a kind":          {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, syscall.SIGTERM, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 2)
				var first os.Signal
				exit := 0
				go listen(signals, func(s os.Signal) { first = s }, func(code int) { exit = code })
				for _, s := range c.signals {
					signals <- s
				}
				close(signals)
				synctest.Wait()
				assert.Equal(t, first, c.first)
				assert.Equal(t, exit, c.exit)
			})
		})
	}
}

func TestASignalWhileTheDemoStartsIsWhatEndedIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&interruption{syscall.SIGTERM})
	f := demoFlags{addr: "127.0.0.1:0", data: t.TempDir(), noBrowser: true}
	err := f.serve(ctx, streams{out: io.Discard, err: io.Discard})
	var cut *interruption
	assert.Equal(t, errors.As(err, &cut), true)
	assert.Equal(t, exitCode(cut.signal), 143)
}
