package vectors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// recorder stands in for the test that asks.
type recorder struct {
	testing.TB
	fatal, skipped string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Fatalf(format string, a ...any) { r.fatal = fmt.Sprintf(format, a...) }
func (r *recorder) Skip(a ...any)                  { r.skipped = fmt.Sprint(a...) }

func TestVectorsAreFoundOrMissed(t *testing.T) {
	t.Setenv(assert.RequireVariable, "all")
	work := t.TempDir()
	checkout := filepath.Join(work, "semel")
	assert.NoError(t, os.MkdirAll(filepath.Join(checkout, "deep", "down"), 0o700))
	assert.NoError(t, os.WriteFile(filepath.Join(checkout, "go.work"), nil, 0o600))
	t.Chdir(filepath.Join(checkout, "deep", "down"))
	beside := filepath.Join(work, "shared", "vectors", "set")
	elsewhere := t.TempDir()

	t.Run("where nobody has them the test is skipped, even if all is required", func(t *testing.T) {
		t.Setenv(Variable, "")
		r := &recorder{TB: t}
		Dir(r, "set")
		assert.Contains(t, r.skipped, "the test vectors set of another project")
		assert.Equal(t, r.fatal, "", "what fails it")
	})
	t.Run("where the variable names their place the test fails without them", func(t *testing.T) {
		t.Setenv(Variable, elsewhere)
		r := &recorder{TB: t}
		Dir(r, "set")
		assert.Contains(t, r.fatal, elsewhere)
		assert.Equal(t, r.skipped, "", "why it is skipped")
	})
	assert.NoError(t, os.MkdirAll(beside, 0o700))
	assert.NoError(t, os.Mkdir(filepath.Join(elsewhere, "set"), 0o700))
	for name, want := range map[string]string{"": beside, elsewhere: filepath.Join(elsewhere, "set")} {
		t.Run(fmt.Sprintf("they are found beside the checkout, or in %s=%q", Variable, name), func(t *testing.T) {
			t.Setenv(Variable, name)
			got, err := filepath.EvalSymlinks(Dir(t, "set"))
			assert.NoError(t, err)
			assert.True(t, strings.HasSuffix(got, want), "got %s, want %s", got, want)
		})
	}
}
