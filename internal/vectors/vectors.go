// Package vectors finds test vectors that other projects publish. They are no
// part of this repository: they lie in shared/vectors beside the checkout, or
// where the variable SEMEL_VECTORS says. A test that does not find them is
// skipped and says so; the same rules have cases of our own in testdata.
package vectors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// Variable names the environment variable that overrides the place.
const Variable = "SEMEL_VECTORS"

// Dir returns the folder of the named set of vectors, or skips the test.
func Dir(t testing.TB, set string) string {
	t.Helper()
	root := os.Getenv(Variable)
	if root == "" {
		root = filepath.Join(checkout(t), "..", "shared", "vectors")
	}
	dir := filepath.Join(root, set)
	if _, err := os.Stat(dir); err != nil {
		assert.Skip(t, "the test vectors "+set+" are not there; set "+Variable+" to their folder")
	}
	return dir
}

// checkout returns the folder that holds go.work.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	assert.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("there is no go.work above this test")
		}
		dir = parent
	}
}
