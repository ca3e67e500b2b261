package demo_test

import (
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
