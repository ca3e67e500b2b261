package semel_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
)

func TestTheMarkOfNotApplied(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	marked := semel.NotApplied(boom)
	for claim, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no error has none":                {nil, false},
		"an error has none of its own":     {boom, false},
		"it is seen":                       {marked, true},
		"it is seen through what wraps it": {fmt.Errorf("charging: %w", marked), true},
		"of several errors one has it, which says nothing of the others": {errors.Join(boom, marked), false},
		"of several errors each has it":                                  {errors.Join(marked, fmt.Errorf("refunding: %w", marked)), true},
		"it is put on what joins several":                                {semel.NotApplied(errors.Join(boom, boom)), true},
	} {
		assert.Equal(t, semel.IsNotApplied(tt.err), tt.want, claim)
	}
	assert.ErrorIs(t, marked, boom)
	assert.Equal(t, marked.Error(), "boom")
	assert.True(t, semel.NotApplied(nil) == nil, "the mark of no error is none")
}
