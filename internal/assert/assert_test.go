package assert_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/internal/assert"
)

// recorder stands in for a test and keeps what it was told. Fatalf does not
// end it, which is all right for helpers that do nothing afterwards.
type recorder struct {
	testing.TB
	failed, fatal, skipped bool
	said                   string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, a ...any) {
	r.failed, r.said = true, fmt.Sprintf(format, a...)
}

func (r *recorder) Fatalf(format string, a ...any) { r.fatal, r.said = true, fmt.Sprintf(format, a...) }
func (r *recorder) Skip(a ...any)                  { r.skipped, r.said = true, fmt.Sprint(a...) }

func TestChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run         func(testing.TB)
		wantFailure string // in what is said; empty: the check holds
	}{
		"equal values hold":                    {func(t testing.TB) { assert.Equal(t, []int{1}, []int{1}) }, ""},
		"unequal values show got and want":     {func(t testing.TB) { assert.Equal(t, 1, 2, "count of %s", "rows") }, "count of rows:\ngot  1\nwant 2"},
		"nil and empty slices differ":          {func(t testing.TB) { assert.Equal(t, []byte{}, nil) }, "got"},
		"true holds":                           {func(t testing.TB) { assert.True(t, true) }, ""},
		"values are written as they are":       {func(t testing.TB) { assert.True(t, false, io.EOF, 7, "x") }, "EOF 7 x:\ngot false"},
		"so are words with a value":            {func(t testing.TB) { assert.True(t, false, "Exec of", "a%b") }, "Exec of a%b:\ngot false"},
		"and a value that looks like a format": {func(t testing.TB) { assert.True(t, false, "LIKE 'a%d'") }, "LIKE 'a%d':\ngot false"},
		"false does not":                       {func(t testing.TB) { assert.True(t, false, "open") }, "open:\ngot false"},
		"a part is found":                      {func(t testing.TB) { assert.Contains(t, "abc", "b") }, ""},
		"a missing part is shown":              {func(t testing.TB) { assert.Contains(t, "abc", "x") }, `contain "x"`},
		"no error holds":                       {func(t testing.TB) { assert.NoError(t, nil) }, ""},
		"an error is shown":                    {func(t testing.TB) { assert.NoError(t, io.EOF) }, "EOF"},
		"a wrapped error matches":              {func(t testing.TB) { assert.ErrorIs(t, fmt.Errorf("x: %w", io.EOF), io.EOF) }, ""},
		"another error does not":               {func(t testing.TB) { assert.ErrorIs(t, errors.New("x"), io.EOF) }, "EOF"},
		"no error does not match either":       {func(t testing.TB) { assert.ErrorIs(t, nil, io.EOF) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			c.run(r)
			if failed := r.failed || r.fatal; failed != (c.wantFailure != "") {
				t.Errorf("got failed %v, want %v", failed, c.wantFailure != "")
			}
			if !strings.Contains(r.said, c.wantFailure) {
				t.Errorf("got %q, want it to contain %q", r.said, c.wantFailure)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		assert.Eventually(t, "it was asked three times", func() bool { asked++; return asked == 3 })
		if asked != 3 {
			t.Errorf("got asked %d times, want 3: until it is so, and no more", asked)
		}
		r := &recorder{TB: t}
		start := time.Now()
		assert.Eventually(r, "pigs fly", func() bool { return r.fatal })
		if !strings.Contains(r.said, "until pigs fly") || time.Since(start).Round(time.Second) != time.Minute {
			t.Errorf("got %q after %v, want what was waited for, after a minute", r.said, time.Since(start))
		}
	})
}

func TestSkip(t *testing.T) {
	t.Run("a skip is a skip while nothing forbids it", func(t *testing.T) {
		t.Setenv(assert.RequireVariable, "")
		r := &recorder{TB: t}
		assert.Skip(r, "no browser here")
		if !r.skipped || r.fatal {
			t.Errorf("got skipped %v and fatal %v, want only skipped", r.skipped, r.fatal)
		}
	})
	t.Run("what no checkout has is a skip where all is required too", func(t *testing.T) {
		t.Setenv(assert.RequireVariable, "all")
		r := &recorder{TB: t}
		assert.SkipForeign(r, "no vectors here")
		if !r.skipped || r.fatal {
			t.Errorf("got skipped %v and fatal %v, want only skipped", r.skipped, r.fatal)
		}
	})
	t.Run("a skip is a failure where all is required", func(t *testing.T) {
		t.Setenv(assert.RequireVariable, "all")
		r := &recorder{TB: t}
		assert.Skip(r, "no browser here")
		if !r.fatal || !strings.Contains(r.said, "no browser here") {
			t.Errorf("got fatal %v saying %q, want fatal with the reason", r.fatal, r.said)
		}
	})
}
