package docstest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

// TestEachPromiseNamesTestsThatThereAre reads docs/guarantees.md: each promise
// has a row of tests, and there is each test, and each chapter of storetest,
// that the page names.
func TestEachPromiseNamesTestsThatThereAre(t *testing.T) {
	t.Parallel()
	var tests, chapters strings.Builder
	for _, path := range files(t, ".go") {
		switch {
		case strings.HasPrefix(path, "storetest/"):
			chapters.WriteString(read(t, path))
			fallthrough
		case strings.HasSuffix(path, "_test.go"):
			tests.WriteString(read(t, path))
		}
	}
	page := read(t, "docs/guarantees.md")
	promises := regexp.MustCompile(`(?m)^### (\d+)\. `).FindAllStringSubmatch(page, -1)
	assert.Equal(t, len(promises), 11, "promises")
	for _, promise := range promises {
		assert.Contains(t, page, fmt.Sprintf("\n| %s | `", promise[1]), "the tests of promise %s", promise[1])
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+|storetest/[^`]+)`").FindAllStringSubmatch(page, -1)
	assert.True(t, len(named) > len(promises), "only %d tests are named", len(named))
	for _, name := range named {
		if chapter, ok := strings.CutPrefix(name[1], "storetest/"); ok {
			assert.True(t, strings.Contains(chapters.String(), `"`+chapter+`"`), "storetest has no chapter %q", chapter)
			continue
		}
		assert.True(t, strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)"), "there is no test %s", name[1])
	}
}
