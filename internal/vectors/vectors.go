// Package vectors finds test vectors that other projects publish. They are no
// part of this repository: they lie in shared/vectors beside the checkout, or
// where the variable SEMEL_VECTORS says. The same rules have cases of our own
// in testdata.
package vectors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// Variable names the environment variable that overrides the place.
const Variable = "SEMEL_VECTORS"

// Dir returns the folder of the named set of vectors. Without them it skips
// the test, and says so, or fails it where Variable names their place.
func Dir(t testing.TB, set string) string {
	t.Helper()
	root := os.Getenv(Variable)
	named := root != ""
	if !named {
		root = filepath.Join(checkout(t), "..", "shared", "vectors")
	}
	dir := filepath.Join(root, set)
	_, err := os.Stat(dir)
	switch {
	case err == nil:
	case named:
		t.Fatalf("%s is %q, but the test vectors %s are not there: %v", Variable, root, set, err)
	default:
		assert.SkipForeign(t, "the test vectors "+set+" of another project are not beside this checkout, in ../shared/vectors; "+
			"if you have them, set "+Variable+" to the folder that holds "+set)
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
