package testhook

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

func TestHooksOfZeroChangeNothing(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Hooks{}.Offset(), time.Duration(0))
}

func TestClockIsSharedByWhoeverOpensItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clock")
	one, err := NewClock(path)
	assert.NoError(t, err)
	assert.NoError(t, one.Advance(time.Hour))
	other, err := NewClock(path)
	assert.NoError(t, err)
	assert.NoError(t, other.Advance(-time.Minute))
	assert.Equal(t, one.Hooks().Offset(), 59*time.Minute)
	assert.Equal(t, other.Hooks().Offset(), 59*time.Minute)
}

func TestClockRefusesAFileOfSomethingElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes")
	assert.NoError(t, os.WriteFile(path, []byte("no clock"+"!"), 0o600))
	clock, err := NewClock(path)
	assert.NoError(t, err)
	assert.True(t, clock.Advance(time.Second) != nil, "Advance fails")
}
