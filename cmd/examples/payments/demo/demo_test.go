package demo_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments/demo"
	"github.com/semel-dev/semel/internal/assert"
)

// What a whole demo does is tested with real processes, in cmd/semel.

func TestWhatADemoCannotDoWithoutIsAskedForByName(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]demo.Config{
		"Config.Addr is required":    {Program: "semel", Child: "demo-process"},
		"Config.Program is required": {Addr: "127.0.0.1:0", Child: "demo-process"},
		"Config.Child is required":   {Addr: "127.0.0.1:0", Program: "semel"},
	} {
		_, err := demo.New(t.Context(), cfg)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	}
}

func TestADirectoryIsOneDemosAtATime(t *testing.T) {
	t.Parallel()
	cfg := demo.Config{Addr: "127.0.0.1:0", Program: os.Args[0], Child: "no-such-child", Data: t.TempDir()}
	start := func() *demo.Demo {
		d, err := demo.New(t.Context(), cfg)
		assert.NoError(t, err)
		return d
	}
	end := func(d *demo.Demo) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.NoError(t, d.Run(ctx))
	}
	first := start()
	_, err := demo.New(t.Context(), cfg)
	want := fmt.Sprintf("%s is in use by a demo that is running (%s, process %d)", cfg.Data, first.URL(), os.Getpid())
	assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %s", err, want)
	end(first)
	end(start())
}
