package check

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

var update = flag.Bool("update", false, "rewrite what the documents say of the cases")

// TestTheDocumentsSayWhatTheCasesDo holds the parts of the documents that are
// made of the cases and of what the broken servers break.
func TestTheDocumentsSayWhatTheCasesDo(t *testing.T) {
	t.Parallel()
	holdPart(t, "../docs/check.md", "broken servers", brokenTable())
	holdPart(t, "../docs/check-cases.md", "cases", casePages())
}

// holdPart compares what stands in a document between two marks.
func holdPart(t *testing.T, file, name, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	assert.NoError(t, err)
	begin, end := "<!-- "+name+": made by go test ./check -update -->\n", "<!-- "+name+": end -->"
	before, rest, found := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	assert.True(t, found && closed, "%s has the marks of %s", file, name)
	if *update {
		assert.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o644)) //nolint:gosec // a document.
		return
	}
	assert.True(t, got == want, "%s is as the cases are: go test ./check -update", file)
}

func brokenTable() string {
	var b strings.Builder
	b.WriteString("\n| An API that | breaks | and, when effects are counted |\n|---|---|---|\n")
	for _, row := range breaks {
		name := string(row.mistake)
		if name == "" {
			name = "is sound"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, sorted(row.seen), sorted(row.counted))
	}
	return b.String() + "\n"
}

func casePages() string {
	var b strings.Builder
	for _, c := range Cases() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s)\n\n- Sent: %s\n- Expected: %s\n- Asked by: %s\n- Why it costs money: %s\n- To mend it: %s\n",
			c.ID, c.Title, c.Level, c.Sends, c.Expects, c.Clause, c.Costs, c.Fix)
	}
	return b.String() + "\n"
}
