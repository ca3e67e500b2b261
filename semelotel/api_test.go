package semelotel_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// Which SDK a program uses, and whether it uses one, is its own choice.
func TestThePackageStandsOnTheAPIAlone(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	assert.NoError(t, err)
	assert.Contains(t, string(out), "\ngo.opentelemetry.io/otel/metric\n")
	for path := range strings.Lines(string(out)) {
		assert.True(t, !strings.HasPrefix(path, "go.opentelemetry.io/otel/sdk"), "imports %s", path)
		assert.True(t, !strings.Contains(path, "prometheus"), "imports %s", path)
	}
}
